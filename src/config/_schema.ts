/**
 * The schemas of `.pml.json` and `config.yaml`. Each message says what is required.
 *
 * @module
 */

import type { z } from "zod";
import { META_TOOLS } from "../core/exposure.ts";
import { isObject } from "../core/json.ts";
import { memoized } from "../core/memo.ts";
import { GRAMMAR, parsePattern } from "../core/pattern.ts";
import { isFreeName, isToolName, serverSlug } from "../core/tool_id.ts";
import { isAddress } from "./_address.ts";
import { FORBIDDEN } from "./_company_file.ts";
import { withType } from "./_document.ts";
import { RATE } from "./identities.ts";
import { OS_LAYERS } from "./os_layer.ts";
import { keyOf, LIMIT_NAMES, LIMITS } from "./limits.ts";
import { REGISTRY_BEGINNINGS } from "./registries.ts";
import { PROVIDERS } from "./sampling.ts";

/** The schema library. It is loaded only if there is a file. */
export type Zod = typeof z;

const SERVER_NAME = 'a name of 1 to 64 of a-z, 0-9, ".", "_" and "-", none that PML reserves';
const NAME = 'a name of 1 to 64 of letters, digits, ".", "_" and "-", not "local"';
const TOKEN = "the name of a variable that does not begin with PML_";
const PART = "a number from 0 to 1";
const TOOLS = 'the pattern "server:tool", "server:*" or "*"';
const HOST = "a host or *.DOMAIN, without a port";
const EXCEPTION = "a host, *.DOMAIN, or a range of addresses such as 10.0.0.0/8";
const EXCEPTIONS = /^((\*?\.)?[\w.:-]+|(\d+\.){3}\d+\/\d\d?|[\da-f]*:[\da-f:]+\/\d{1,3})$/i;
const PROXY = /^http:\/\/(([^\s/?#@{}$%]|%[0-7][\da-f]|\$\{\w+\})+@)?[\w.:[\]-]+\/?$/i;
const KEY_PLACE = /^(\$\{(?!PML_)\w+\}|(?!.*:\/\/)(?!\$)(?=.*\S).*)$/s;
const PERSONAL = "nothing: certificates are set in your config.yaml";
const PRICE = "a number that is 0 or more";
const MOST_LISTED = 10_000;
const MOST_TOKENS = 1_000_000;
const LABEL = "a string of 1 to 128 visible characters";
const RULE = `the rule ${GRAMMAR}`;

/** Returns the schema of a `.pml.json`. */
export function workspaceSchema(zod: Zod) {
  const { object, text, url } = words(zod);
  return object({}, {
    version: zod.literal(1, "1"),
    $schema: text(),
    workspace: text("a relative path", /^(?![/\\]|[A-Za-z]:|(.*[/\\])?\.\.([/\\]|$))./s),
    ...shared(zod),
    ...serverSections(zod),
    cloud: object({}, { url: url("https://") }),
    grants: grantsIn(zod),
    intent: text("at most 2000 characters", /^[^]{0,2000}$/),
  });
}

function grantsIn(zod: Zod) {
  const { object, text, list, filled } = words(zod);
  const texts = list(filled, "strings");
  return zod.record(
    text("the name of a server", { test: isFreeName }),
    object({}, { read: texts, write: texts, net: texts, run: texts, env: texts }),
  );
}

/** Returns the schema of a `config.yaml`. */
export function personSchema(zod: Zod) {
  const { object, number, part, text, list, flag, filled, url } = words(zod);
  const folder = text("the path of a folder", /^(?!.*:\/\/)(?=.*\S)/s);
  const limits = LIMIT_NAMES.map((name) => {
    const [, least, most] = LIMITS[name];
    return [keyOf(name), number(least, most)];
  });
  const later = zod.unknown();
  return object({}, {
    ...shared(zod),
    limits: object({}, Object.fromEntries(limits)),
    approvals: object({}, { channel: zod.enum(["client", "page", "terminal"]) }),
    journal: zod.enum(["required", "best_effort"]),
    memory: zod.union([flag, object({}, { enabled: flag })], "true, false, or { enabled: false }"),
    sandbox: object({}, { os_layer: zod.enum(OS_LAYERS) }),
    mcpServers: serverSections(zod, true).mcpServers,
    grants: grantsIn(zod),
    network: object({
      proxy: text("http://HOST:PORT or http://${USER}:${PASSWORD}@HOST:PORT", {
        test: (said) => PROXY.test(said) && URL.canParse(said),
      }),
    }, { no_proxy: list(text(EXCEPTION, EXCEPTIONS), "hosts") }),
    search: object({}, { model: folder }),
    workspaces: list(folder, "paths of folders"),
    workflow: object({}, { confidence: part }),
    sampling: samplingSchema(zod),
    toolsets: toolsetsSchema(zod),
    client_toolsets: zod.record(filled, filled),
    identities: identitiesSchema(zod),
    serve: object({}, {
      sealing_key: text("the path of a file, or ${NAME}", KEY_PLACE),
      replica_address: text(
        "IP:PORT at which others reach it",
        /^(?!0\.0\.0\.0|\[::\])([\d.]+|\[[\da-f:]+\]):\d{1,5}$/i,
      ),
    }),
    oauth: object({}, { client_metadata_url: url("https://") }),
    telemetry: later,
  });
}

/** Returns the schema of a company's policy. No key of it allows anything. */
export function policySchema(zod: Zod) {
  const { object, text, list, url, rules } = words(zod);
  return object({}, {
    permissions: object({}, { ask: rules, deny: rules }),
    forbid: list(zod.enum(FORBIDDEN), "kinds of servers"),
    registries: list(url(...REGISTRY_BEGINNINGS), "URLs"),
    hosts: list(text(HOST, /^(\*\.)?[\w-]+(\.[\w-]+)*$|^\[[\da-f:.]+\]$/i), "hosts"),
  });
}

function toolsetsSchema(zod: Zod) {
  const { text, list, tool } = words(zod);
  return zod.record(text(NAME, /^[\w.-]{1,64}$/), list(tool, "names or patterns of tools"));
}

function identitiesSchema(zod: Zod) {
  const { object, text, flag, permissions, tool } = words(zod);
  const name = text(NAME, /^(?!local$)[\w.-]{1,64}$/);
  return zod.record(
    name,
    object({
      token: text("the SHA-256 of a token, which `pml token new` writes", /^[0-9a-f]{64}$/),
    }, {
      permissions,
      toolset: name,
      keys: flag,
      rates: zod.record(tool, text('a rate such as "60/minute"', RATE)),
    }),
  );
}

/** Returns the schema of `sampling`. Money can be counted only where there are prices. */
function samplingSchema(zod: Zod) {
  const { object, list, filled, url, number, tool } = words(zod);
  const price = zod.number(PRICE).min(0, PRICE);
  const priced = "set only together with sampling.prices";
  return object({ provider: zod.enum(PROVIDERS), model: filled }, {
    models: list(filled, "names of models"),
    base_url: url("https://"),
    prefer: zod.enum(["client", "provider"]),
    max_tokens: number(1, MOST_TOKENS),
    max_turns: number(1, 100),
    requests_per_minute: number(1, 10_000),
    tokens_per_day: number(1, 1_000_000_000),
    prices: object({ input_per_million: price, output_per_million: price }, {}),
    money_per_day: price,
    allowed_tool_patterns: list(tool, "names or patterns of tools"),
  }).refine(({ prices, money_per_day: money }) => money === undefined || prices !== undefined, {
    error: priced,
    path: ["money_per_day"],
  });
}

/** Returns the schemas of the keys that both files may have. */
function shared(zod: Zod) {
  const { object, text, list, flag, filled, url, number, part, permissions, tool } = words(zod);
  const token = text(TOKEN, /^(?!PML_)[A-Z_][A-Z0-9_]*$/i);
  const tools = list(tool, "names or patterns of tools");
  const registry = url(...REGISTRY_BEGINNINGS);
  const label = text(LABEL, /^(?=.*\S)[^\p{C}\p{Zl}\p{Zp}]{1,128}$/u);
  const metaTool = zod.enum(META_TOOLS);
  return {
    permissions,
    gateway: object({}, {
      name: label,
      version: label,
      tools_exposure: text(),
      meta_tools: list(metaTool, "names"),
      prefix: flag,
      toolset: filled,
      hybrid: object({}, {
        expose_meta_tools: flag,
        expose_underlying_tools: flag,
        apply_semantic_filter: flag,
        max_underlying_tools: number(0, MOST_LISTED),
        semantic_threshold: part,
        max_tokens: number(0, MOST_TOKENS),
        whitelisted_tools: tools,
        blacklisted_tools: tools,
      }),
    }),
    registries: list(
      zod.union(
        [registry, object({ url: registry }, { token_env: token, public_key: filled })],
        "a URL, or an object with url, token_env and public_key",
      ),
      "registries",
    ),
  };
}

/** Returns the schema of `mcpServers`, which both files may have. */
export const clientServersSchema = memoized((zod: Zod) => serverSections(zod).mcpServers);

/**
 * Returns the schemas of both sections of servers. Types of servers are distinguished by `type`.
 */
function serverSections(zod: Zod, isPerson = false) {
  const { object, text, list, flag, filled, number, variable, url } = words(zod);
  const type = <T extends string>(...names: readonly T[]) => ({ type: zod.enum(names) });
  const path = text("the path of a file", /^(?!-----|.*:\/\/)(?=.*\S)/s);
  const texts = list(text(), "strings");
  const tools = toolsSchema(zod);
  const program = { command: filled };
  const given = { args: texts, env: zod.record(variable, text()) };
  const running = { cwd: path, tools: tools.any, confine: flag };
  const address = { url: url("https://", "http://") };
  const header = text("the name of a header", /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/);
  const line = text("a header value on one line", /^[^\r\n]*$/);
  const oauth = object({}, {
    client_id: filled,
    client_secret: filled,
    scopes: list(text("a scope", /^[\x21\x23-\x5b\x5d-\x7e]+$/), "scopes"),
    redirect_port: number(1, 65_535),
  }).refine(
    ({ client_id, client_secret }) => client_secret === undefined || client_id !== undefined,
    { error: "set only together with oauth.client_id", path: ["client_secret"] },
  );
  const file = isPerson ? path : zod.never(PERSONAL);
  const sent = {
    ...{ headers: zod.record(header, line), oauth, tools: tools.any },
    ...{ ca: file, cert: file, key: file },
  };
  const any = zod.unknown();
  // Keys that clients write and PML ignores: only rules decide which calls run.
  const beside = {
    disabled: flag,
    timeout: any,
    description: any,
    autoApprove: any,
    alwaysAllow: any,
  };
  const own = zod.discriminatedUnion("type", [
    object({ ...type("deno"), path }, { confine: flag, tools: tools.settings }),
    object({ ...type("stdio"), install: object(program, given) }, running),
    object({ ...type("http"), ...address }, sent),
  ]);
  const clients = zod.discriminatedUnion("type", [
    object({ ...type("stdio"), ...program }, { ...given, ...running, ...beside }),
    object({ ...type("http", "streamable-http", "sse"), ...address }, { ...sent, ...beside })
      .refine(
        ({ url, ca, cert, key }) => !cert === !key && (!(ca ?? cert) || /^https:/i.test(url)),
        "cert and key together, and a url that begins https://",
      ),
  ]);
  const title = text(SERVER_NAME, { test: (value) => succeeds(() => serverSlug(value)) });
  return {
    private_mcps: zod.record(title, own),
    mcpServers: zod.record(title, zod.preprocess(withType, clients)),
  };
}

/**
 * Returns the schemas for the tools of a server: the list of tools to keep, or settings for each
 * tool.
 */
function toolsSchema(zod: Zod) {
  const { object, text, list, flag } = words(zod);
  const setting = object({}, {
    disabled: flag,
    rename: text("the name of a tool", { test: isToolName }),
    description: text(),
    arguments: zod.record(text(), zod.json()),
  });
  const names = list(text(), "strings, or an object of tools");
  const settings = zod.record(text(), setting);
  type Said = z.output<typeof names> | z.output<typeof settings>;
  // This is no union, because the error of a union would not say what is wrong with the meant one.
  const any = zod.custom<Said>().check(({ value, issues }) => {
    const { error } = (isObject(value) ? settings : names).safeParse(value, {
      error: () => "an object",
    });
    // These issues have their messages already, so they can be passed on.
    issues.push(...(error?.issues ?? []) as unknown as z.core.$ZodRawIssue[]);
  });
  return { any, settings };
}

/** Returns the building blocks of the schemas. */
function words(zod: Zod) {
  /** Returns the schema of an object with required and optional keys, and no others. */
  function object<R extends z.ZodRawShape, O extends z.ZodRawShape>(required: R, optional: O) {
    const names = Object.keys({ ...required, ...optional }).join(", ");
    const error: z.core.$ZodErrorMap = ({ code }) =>
      code === "unrecognized_keys" ? `one of ${names}` : undefined;
    return zod.strictObject(required, { error }).extend(zod.object(optional).partial().shape);
  }
  /** Returns the schema of a text that passes a test. No text may contain NUL. */
  function text(wanted = "a string", grammar: { test(value: string): boolean } = /^/) {
    const passes = (value: string) => !value.includes("\0") && grammar.test(value);
    return zod.string(wanted).refine(passes, wanted);
  }
  const list = <T extends z.ZodType>(item: T, what: string) =>
    zod.array(item, `an array of ${what}`);
  const rules = list(text(RULE, { test: (value) => succeeds(() => parsePattern(value)) }), "rules");
  return {
    object,
    text,
    list,
    rules,
    permissions: object({}, { allow: rules, ask: rules, deny: rules }),
    part: zod.number(PART).min(0, PART).max(1, PART),
    tool: text(TOOLS, { test: isToolsPattern }),
    filled: text("a string that is not empty", /\S/),
    flag: zod.boolean("true or false"),
    variable: text("the name of a variable", /^[A-Za-z_][A-Za-z0-9_]*$/),
    /**
     * Returns the schema of a URL that begins with one of these texts, or leads to this machine.
     */
    url: (...beginnings: readonly string[]) =>
      text(`a URL that begins ${beginnings.join(" or ")}, without a user name or password`, {
        test: (value) => isAddress(value, beginnings),
      }),
    number: (least: number, most: number) => {
      const wanted = `a whole number from ${least} to ${most}`;
      return zod.int(wanted).min(least, wanted).max(most, wanted);
    },
  };
}

function succeeds(read: () => unknown): boolean {
  try {
    read();
    return true;
  } catch {
    // The message of the schema says what is wrong.
    return false;
  }
}

/** Returns whether a rule covers tools with all of their arguments, and no other part of MCP. */
function isToolsPattern(said: string): boolean {
  return succeeds(() => parsePattern(said)) && !/[(@]/.test(said);
}

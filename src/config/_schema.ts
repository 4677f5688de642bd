/**
 * The schemas of `.pml.json` and `config.yaml`. Each message says what is required.
 *
 * @module
 */

import { META_KEY } from "../protocol/client_meta.ts";
import { META_TOOLS } from "./exposure.ts";
import { canonical, isObject, type Json } from "../core/json.ts";
import { GRAMMAR, parsePattern } from "../core/pattern.ts";
import { isFreeName, isToolName, serverSlug } from "../core/tool_id.ts";
import { withType } from "./_document.ts";
import type { OsLayer } from "./os_layer.ts";
import { keyOf, LIMIT_NAMES, LIMITS } from "./limits.ts";
import { isAddress, REGISTRY_BEGINNINGS } from "./registries.ts";
import type { ServerEntry } from "./servers.ts";
import {
  also,
  any,
  byType,
  either,
  leaf,
  list,
  object,
  oneOf,
  record,
  type Wanted,
} from "../core/wanted.ts";
import type { EntryForms, FormParts } from "../servers/kind.ts";
import { KINDS, pinnedKinds } from "../servers/kinds.ts";

/** How a rate is written: `60/minute`. */
export const RATE = /^([1-9]\d{0,5})\/(second|minute|hour|day)$/;
/** What a policy can forbid. */
export const FORBIDDEN = [
  ...pinnedKinds(),
  ...["registry", "container", "unconfined"],
];

const SERVER_NAME = 'a name of 1 to 64 of a-z, 0-9, ".", "_" and "-", none that PML reserves';
const NAME = 'a name of 1 to 64 of letters, digits, ".", "_" and "-", not "local"';
const TOOLS = 'the pattern "server:tool", "server:*" or "*"';
const HOST = "a host or *.DOMAIN, without a port";
const EXCEPTION = "a host, *.DOMAIN, or a range of addresses such as 10.0.0.0/8";
const EXCEPTIONS = /^((\*?\.)?[\w.:-]+|(\d+\.){3}\d+\/\d\d?|[\da-f]*:[\da-f:]+\/\d{1,3})$/i;
const PROXY = /^http:\/\/(([^\s/?#@{}$%]|%[0-7][\da-f]|\$\{\w+\})+@)?[\w.:[\]-]+\/?$/i;
const KEY_PLACE = /^(\$\{(?!PML_)\w+\}|(?!.*:\/\/)(?!\$)(?=.*\S).*)$/s;
const PERSONAL = "nothing: certificates are set in your config.yaml";
const MOST_LISTED = 10_000;
const MOST_TOKENS = 1_000_000;
const RULE = `the rule ${GRAMMAR}`;

const rules = list(text(RULE, { test: (value) => succeeds(() => parsePattern(value)) }), "rules");
const permissions = object({}, { allow: rules, ask: rules, deny: rules });
const part = leaf<number>("a number from 0 to 1", (value) => within(value, 0, 1));
const price = leaf<number>(
  "a number that is 0 or more",
  (value) => within(value, 0, Number.MAX_VALUE),
);
const tool = text(TOOLS, { test: isToolsPattern });
const filled = text("a string that is not empty", /\S/);
const isFlag = (value: unknown) => typeof value === "boolean";
const flag = leaf<boolean>("true or false", isFlag);
const variable = text("the name of a variable", /^[A-Za-z_][A-Za-z0-9_]*$/);
const json = leaf<Json>("a JSON value", (value) => succeeds(() => canonical(value as Json)));
const texts = list(text(), "strings");
const label = text(
  "a string of 1 to 128 visible characters",
  /^(?=.*\S)[^\p{C}\p{Zl}\p{Zp}]{1,128}$/u,
);
const metaKey = text("a key of _meta of 1 to 128 visible characters", META_KEY);
const token = text(
  "the name of a variable that does not begin with PML_",
  /^(?!PML_)[A-Z_][A-Z0-9_]*$/i,
);
const identity = text(NAME, /^(?!local$)[\w.-]{1,64}$/);
const folder = text("the path of a folder", /^(?!.*:\/\/)(?=.*\S)/s);
const path = text("the path of a file", /^(?!-----|.*:\/\/)(?=.*\S)/s);
const tools = list(tool, "names or patterns of tools");
const registry = url(...REGISTRY_BEGINNINGS);
const REGISTRY_URL = `a URL that begins ${REGISTRY_BEGINNINGS.join(" or ")}`;
const isRegistry = (value: string) => isAddress(value, REGISTRY_BEGINNINGS);
const setting = object({}, {
  disabled: flag,
  rename: text("the name of a tool", { test: isToolName }),
  description: text(),
  arguments: record(text(), json),
});
const settings = record(text(), setting);
const granted = list(filled, "strings");
const grants = record(
  text("the name of a server", { test: isFreeName }),
  object({}, { read: granted, write: granted, net: granted, run: granted, env: granted }),
);

const listed = leaf<string | { readonly name: string }>(
  "the name of a tool, or its definition",
  (value) => typeof value === "string" || isObject(value) && typeof value.name === "string",
);
const listedTools = either(list(listed, "strings, or an object of tools"), settings);
const required = { env_required: list(variable, "names of variables") };
/** The keys of a registry's entry, which can be pasted. Only `env_required` has an effect. */
const pasted = {
  ...{ fqdn: text(), version: text(), description: text(), integrity: text() },
  ...{ routing: oneOf(["local"]), warnings: texts, ...required },
};

/** Keys that clients write and PML ignores: only rules decide which calls run. */
const beside = {
  disabled: flag,
  timeout: any,
  description: any,
  autoApprove: any,
  alwaysAllow: any,
};

/** The keys that both files may have. */
const shared = {
  permissions,
  gateway: object({}, {
    name: label,
    version: label,
    tools_exposure: text(),
    meta_tools: list(oneOf(META_TOOLS), "names"),
    prefix: flag,
    long_names: flag,
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
    either(
      text(`${REGISTRY_URL}, or an object with url, token_env and public_key`, {
        test: isRegistry,
      }),
      object({ url: registry }, { token_env: token, public_key: filled }),
    ),
    "registries",
  ),
};

/** Money can be counted only where there are prices. */
const sampling = also(
  object({ provider: oneOf(["anthropic", "openai"]), model: filled }, {
    models: list(filled, "names of models"),
    base_url: url("https://"),
    prefer: oneOf(["client", "provider"]),
    max_tokens: number(1, MOST_TOKENS),
    max_turns: number(1, 100),
    requests_per_minute: number(1, 10_000),
    tokens_per_day: number(1, 1_000_000_000),
    prices: object({ input_per_million: price, output_per_million: price }, {}),
    money_per_day: price,
    allowed_tool_patterns: tools,
  }),
  ({ prices, money_per_day: money }) => money === undefined || prices !== undefined,
  { wanted: "set only together with sampling.prices", key: "money_per_day" },
);

const identities = record(
  identity,
  object({
    token: text("the SHA-256 of a token, which `pml token new` writes", /^[0-9a-f]{64}$/),
  }, {
    permissions,
    toolset: identity,
    keys: flag,
    rates: record(tool, text('a rate such as "60/minute"', RATE)),
  }),
);

/** What a workspace's file and files of clients define: the certificates are the person's. */
const workspaceServers = serverSections(leaf<string>(PERSONAL, () => false));

/** The schema of the servers of a client's file, as PML writes them. */
export const clientServersSchema = workspaceServers.mcpServers;

/** The schema of a `.pml.json`. */
export const workspaceSchema = object({}, {
  version: leaf<1>("1", (value) => value === 1),
  $schema: text(),
  workspace: text("a relative path", /^(?![/\\]|[A-Za-z]:|(.*[/\\])?\.\.([/\\]|$))./s),
  ...shared,
  ...workspaceServers,
  cloud: object({}, { url: url("https://") }),
  grants,
  intent: text("at most 2000 characters", /^[^]{0,2000}$/),
});

/** The schema of a `config.yaml`. */
export const personSchema = object({}, {
  ...shared,
  limits: object(
    {},
    Object.fromEntries(LIMIT_NAMES.map((name) => {
      const [, least, most] = LIMITS[name];
      return [keyOf(name), number(least, most)];
    })),
  ),
  approvals: object({}, { channel: oneOf(["client", "page", "terminal"]) }),
  ask_for_keys: flag,
  journal: oneOf(["required", "best_effort"]),
  memory: either(
    leaf<boolean>("true, false, or { enabled: false }", isFlag),
    object({}, { enabled: flag }),
  ),
  sandbox: object({}, {
    os_layer: oneOf<OsLayer>(["auto", "landlock", "bwrap", "off", "required"]),
  }),
  mcpServers: serverSections(path).mcpServers,
  grants,
  network: object({
    proxy: text("http://HOST:PORT or http://${USER}:${PASSWORD}@HOST:PORT", {
      test: (said) => PROXY.test(said) && URL.canParse(said),
    }),
  }, { no_proxy: list(text(EXCEPTION, EXCEPTIONS), "hosts") }),
  search: object({}, { model: folder }),
  warm: flag,
  workspaces: list(folder, "paths of folders"),
  workflow: object({}, { confidence: part }),
  sampling,
  toolsets: record(text(NAME, /^[\w.-]{1,64}$/), tools),
  client_toolsets: record(filled, filled),
  client_meta: list(metaKey, "keys of _meta"),
  identities,
  serve: object({}, {
    sealing_key: text("the path of a file, or ${NAME}", KEY_PLACE),
    replica_address: text(
      "IP:PORT at which others reach it",
      /^(?!0\.0\.0\.0|\[::\])([\d.]+|\[[\da-f:]+\]):\d{1,5}$/i,
    ),
  }),
  oauth: object({}, {
    client_metadata_url: url("https://"),
    issuer_hosts: record(
      url("https://"),
      list(text("HOST or HOST:PORT", /^([a-z\d][a-z\d.-]*|\[[\da-f:.]+\])(:\d{1,5})?$/i), "hosts"),
    ),
  }),
  telemetry: any,
});

/** The schema of a company's policy. No key of it allows anything. */
export const policySchema = object({}, {
  permissions: object({}, { ask: rules, deny: rules }),
  forbid: list(oneOf(FORBIDDEN), "kinds of servers"),
  registries: list(registry, "URLs"),
  hosts: list(text(HOST, /^(\*\.)?[\w-]+(\.[\w-]+)*$|^\[[\da-f:.]+\]$/i), "hosts"),
});

/**
 * Returns the schemas of both sections of servers, with that of the path of a certificate. Types of
 * servers are distinguished by `type`.
 */
function serverSections(certificate: Wanted<string>) {
  const parts: FormParts = {
    ...{ text: text(), filled, texts, flag, variable, path, certificate, listedTools, settings },
    ...{ port: number(1, 65_535), matching: text, required, pasted, beside },
    type: (...types) => ({ type: oneOf(types) }),
  };
  const forms = KINDS.flatMap(({ definition }) => definition?.forms?.(parts) ?? []);
  const typeOf = (section: keyof EntryForms) =>
    byType(Object.assign({}, ...forms.map((form) => form[section]))) as Wanted<ServerEntry>;
  const clients = typeOf("clients");
  const typed: Wanted<ServerEntry> = (value, place): value is ServerEntry =>
    clients(withType(value), place);
  const title = text(SERVER_NAME, { test: (value) => succeeds(() => serverSlug(value)) });
  return { private_mcps: record(title, typeOf("own")), mcpServers: record(title, typed) };
}

/** Wants a text that passes a test. No text may contain NUL. */
function text(
  wanted = "a string",
  grammar: { test(value: string): boolean } = /^/,
): Wanted<string> {
  return leaf(
    wanted,
    (value) => typeof value === "string" && !value.includes("\0") && grammar.test(value),
  );
}

/** Wants a URL that begins with one of these texts, or leads to this machine. */
function url(...beginnings: readonly string[]): Wanted<string> {
  return text(`a URL that begins ${beginnings.join(" or ")}, without a user name or password`, {
    test: (value) => isAddress(value, beginnings),
  });
}

function number(least: number, most: number): Wanted<number> {
  const passes = (value: unknown) => Number.isSafeInteger(value) && within(value, least, most);
  return leaf(`a whole number from ${least} to ${most}`, passes);
}

function within(value: unknown, least: number, most = Infinity): boolean {
  return typeof value === "number" && value >= least && value <= most;
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

/**
 * Converts a server of a client's configuration to PML's form: the same keys and the same form of
 * variables.
 *
 * @module
 */

import { WORKSPACE_FOLDER } from "../core/folder_variables.ts";
import { defined, isObject, objectOf, textsOf } from "../core/json.ts";
import { leftOf, type LeftOut } from "./_client_left.ts";
import { variableNameFrom } from "../core/secret_words.ts";
import { type ClientEntry, type ClientPlace, pathRules } from "./clients.ts";
import type { RemoteDefinition } from "../servers/kind.ts";
import { timeoutOf } from "./servers.ts";

export type { LeftOut } from "./_client_left.ts";

/** A server in the form of PML's `mcpServers`, before the schema checked it. */
export interface ClientDefinition {
  readonly command?: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly envFile?: string;
  readonly type?: string;
  readonly url?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly oauth?: RemoteDefinition["oauth"];
  readonly tools?: readonly string[] | Readonly<Record<string, { readonly disabled: true }>>;
  readonly timeout?: number;
}

/**
 * The result of a conversion: a definition and the keys it leaves out, or the reason why there is
 * none.
 */
export type Converted =
  | { readonly definition: ClientDefinition; readonly left: readonly LeftOut[] }
  | { readonly why: string };

const KINDS = ["stdio", "http", "sse", "streamable-http", "streamableHttp"];
/** The members of a sign-in that PML reads. */
const SIGN_IN = ["client_id", "client_secret", "scopes", "redirect_port"];
/** Variables that PML itself replaces. */
const OURS = /^\$\{\w+(:-[^}]*)?\}$/;

/** Converts an entry, or returns why PML cannot run the server. */
export function converted(entry: ClientEntry, place: ClientPlace): Converted {
  const { said } = entry;
  const type = said.type || "stdio";
  if (!KINDS.includes(type as string)) return { why: "PML serves no servers of this kind" };
  const url = said.url ?? said.serverUrl ?? said.httpUrl;
  if (url === undefined && said.command === undefined && said.settings !== undefined) {
    return { why: "an extension of the client brings it" };
  }
  const raw = url === undefined ? stdioOf(said, place) : httpOf(said, url);
  const unknown = new Set<string>();
  const fill = (text: string) => filled(text, { entry, place, unknown });
  const definition = strings(raw, fill) as ClientDefinition; // the schema checks it later
  if (unknown.size > 0) {
    return { why: `it uses ${[...unknown].join(", ")}, which only the client fills in` };
  }
  const { timeout: limit, tool_timeout_sec: seconds } = said;
  const timeout = timeoutOf(typeof seconds === "number" ? seconds * 1_000 : limit);
  const signIn = signInOf(said).map(([key]) => key).filter((key) => !SIGN_IN.includes(key));
  const omissions = leftOf(said, {
    isProgram: url === undefined,
    signIn,
    hasTimeout: timeout !== undefined,
  });
  return { definition: { ...definition, ...defined({ timeout }) }, left: omissions };
}

function stdioOf(fields: ClientEntry["said"], place: ClientPlace): object {
  const { command, args, env, cwd, envFile, env_vars } = fields;
  // Codex lists variables that are passed on unchanged.
  const passed = (Array.isArray(env_vars) ? env_vars : [])
    .map((one) => isObject(one) && one.source !== "remote" ? one.name : one)
    .filter((name) => typeof name === "string")
    .map((name) => [name, `\${${name}}`]);
  const all = { ...objectOf(env), ...Object.fromEntries(passed) };
  return defined({
    command,
    args,
    env: isObject(env ?? {}) ? orNothing(all) : env,
    cwd: inWorkspace(cwd, place),
    envFile: inWorkspace(envFile, place),
    tools: toolsOf(fields),
  });
}

function httpOf(fields: ClientEntry["said"], url: unknown): object {
  const { type, headers, http_headers, env_http_headers, bearer_token_env_var: bearer } = fields;
  const named = Object.entries(objectOf(env_http_headers));
  const all = {
    ...objectOf(headers),
    ...objectOf(http_headers),
    ...Object.fromEntries(named.map(([header, name]) => [header, `\${${name}}`])),
    ...(typeof bearer === "string" ? { Authorization: `Bearer \${${bearer}}` } : {}),
  };
  return defined({
    type: type === "sse" ? "sse" : undefined,
    url,
    headers: isObject(headers ?? {}) ? orNothing(all) : headers,
    oauth: orNothing(
      Object.fromEntries(signInOf(fields).filter(([key]) => SIGN_IN.includes(key))),
    ),
    tools: toolsOf(fields),
  });
}

/** Returns a client's settings for signing in at a server, with PML's keys. */
function signInOf(
  { oauth, auth = oauth, scopes }: ClientEntry["said"],
): readonly (readonly [string, unknown])[] {
  const all = { ...defined({ scopes }), ...objectOf(auth) };
  return Object.entries(all).map(([key, value]) => {
    const own = key.replace("callback", "redirect").replace(/[a-z](?=[A-Z])/g, "$&_").toLowerCase();
    const isList = own === "scopes" && typeof value === "string";
    return [SIGN_IN.includes(own) ? own : key, isList ? value.split(" ") : value];
  });
}

/** Returns the tools to keep, or the settings that switch some off. */
function toolsOf(fields: ClientEntry["said"]): unknown {
  const { tools, enabled_tools, includeTools } = fields;
  const named = enabled_tools ?? includeTools ?? tools;
  // Codex also has a table of single tools.
  const single = Object.entries(objectOf(tools))
    .flatMap(([name, tool]) => objectOf(tool).enabled === false ? [name] : []);
  const off = [fields.disabled_tools, fields.excludeTools, fields.disabledTools, single].flatMap(
    textsOf,
  );
  // Some clients write "*" for all tools.
  if (Array.isArray(named) && !named.includes("*")) {
    return named.filter((one) => !off.includes(one));
  }
  return orNothing(Object.fromEntries(off.map((name) => [name, { disabled: true }])));
}

/** Returns a path that is relative to the workspace in a form that any file can contain. */
function inWorkspace(path: unknown, place: ClientPlace): unknown {
  const { isAbsolute, sep } = pathRules(place);
  if (typeof path !== "string" || path === "" || isAbsolute(path) || path.startsWith("${")) {
    return path;
  }
  const names = path.replaceAll(sep, "/").replace(/^\.\//, "");
  return names === "." ? WORKSPACE_FOLDER : `${WORKSPACE_FOLDER}/${names}`;
}

function orNothing(value: object): object | undefined {
  return Object.keys(value).length === 0 ? undefined : value;
}

/** Returns a value with every string in it replaced by the result of a function. */
function strings(value: unknown, fill: (text: string) => string): unknown {
  if (typeof value === "string") return fill(value);
  if (Array.isArray(value)) return value.map((each) => strings(each, fill));
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, strings(each, fill)]));
}

function filled(
  text: string,
  { entry, place, unknown }: {
    readonly entry: ClientEntry;
    readonly place: ClientPlace;
    readonly unknown: Set<string>;
  },
): string {
  // Gemini also has variables without braces.
  const braced = entry.client === "gemini"
    ? text.replace(/\$([A-Za-z_]\w*)/g, "${$1}")
    // opencode writes `{env:NAME}`, and `{file:PATH}`.
    : text.replace(/(?<!\$)\{((?:env|file):[^{}]*)\}/g, "${$1}");
  return braced.replace(/\$\{(?:(input|env):)?([^{}]*)\}/g, (all, from, name: string) => {
    if (from === "env" && place.environment.get(name) !== undefined) return `\${${name}}`;
    if (from !== undefined) return `\${${variableNameFrom(name)}}`;
    switch (name) {
      case "workspaceFolder":
      case "workspaceFolderBasename":
      case "userHome":
        return all; // PML fills them in at the start
      case "workspaceRoot":
        return WORKSPACE_FOLDER;
      case "/":
      case "pathSeparator":
        return "/";
    }
    if (OURS.test(all)) return all;
    unknown.add(/^\w{1,30}/.exec(name)?.[0] ?? "a variable");
    return all;
  });
}

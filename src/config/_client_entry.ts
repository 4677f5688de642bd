/**
 * Converts a server of a client's configuration to PML's form: the same keys and the same form of
 * variables.
 *
 * @module
 */

import { WORKSPACE_FOLDER } from "../core/folder_variables.ts";
import { isObject, objectOf, textsOf, withoutUndefined } from "../core/json.ts";
import { type OmittedKey, omittedKeys } from "./_omitted_keys.ts";
import { isRandom, variableNameFrom } from "../core/secret_words.ts";
import { type ClientEntry, type ClientPlace, pathRules } from "./clients.ts";
import type { RemoteDefinition } from "../servers/kind.ts";
import { timeoutOf } from "./servers.ts";

export type { OmittedKey } from "./_omitted_keys.ts";

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
export type Conversion =
  | { readonly definition: ClientDefinition; readonly left: readonly OmittedKey[] }
  | { readonly why: string };

const KINDS = ["stdio", "http", "sse", "streamable-http", "streamableHttp"];
/** The keys of a sign-in that PML reads. */
const SIGN_IN = ["client_id", "client_secret", "scopes", "redirect_port"];
/** Matches a variable that PML itself replaces. */
const OWN_REFERENCE = /^\$\{\w+(:-[^}]*)?\}$/;
/** Matches the name of a client's variable, such as `config:editor.font`. Keys have digits. */
const CLIENT_REFERENCE = /^[a-z][A-Za-z]{0,30}(?::[A-Za-z][A-Za-z.-]{0,40})?$/;
/** The clients that also replace variables without braces, such as `$NAME`. */
const DOLLAR_CLIENTS = ["gemini", "qwen"];

/** Converts an entry, or returns why PML cannot run the server. */
export function convertEntry(entry: ClientEntry, place: ClientPlace): Conversion {
  const { fields } = entry;
  const type = fields.type || "stdio";
  if (!KINDS.includes(type as string)) return { why: "PML does not support servers of this type" };
  const url = fields.url ?? fields.serverUrl ?? fields.httpUrl;
  if (url === undefined && fields.command === undefined && fields.settings !== undefined) {
    return { why: "an extension of the client provides it" };
  }
  const raw = url === undefined ? stdioOf(fields, place) : httpOf(fields, url);
  const unknown = new Set<string>();
  const fill = (text: string) => fillVariables(text, { entry, place, unknown });
  const definition = mapStrings(raw, fill) as ClientDefinition; // the schema checks it later
  if (unknown.size > 0) {
    return {
      why: `it uses ${[...unknown].join(", ")}, which only the client replaces: write its value`,
    };
  }
  const { timeout: limit, tool_timeout_sec: seconds } = fields;
  const timeout = timeoutOf(typeof seconds === "number" ? seconds * 1_000 : limit);
  const signIn = signInOf(fields).map(([key]) => key).filter((key) => !SIGN_IN.includes(key));
  const omissions = omittedKeys(fields, {
    isProgram: url === undefined,
    signIn,
    hasTimeout: timeout !== undefined,
  });
  return { definition: { ...definition, ...withoutUndefined({ timeout }) }, left: omissions };
}

function stdioOf(fields: ClientEntry["fields"], place: ClientPlace): object {
  const { command, args, env, cwd, envFile, env_vars } = fields;
  // Codex lists variables that are passed on unchanged.
  const inherited = (Array.isArray(env_vars) ? env_vars : [])
    .map((entry) => isObject(entry) && entry.source !== "remote" ? entry.name : entry)
    .filter((name) => typeof name === "string")
    .map((name) => [name, `\${${name}}`]);
  const all = { ...objectOf(env), ...Object.fromEntries(inherited) };
  return withoutUndefined({
    command,
    args,
    env: isObject(env ?? {}) ? undefinedIfEmpty(all) : env,
    cwd: toWorkspacePath(cwd, place),
    envFile: toWorkspacePath(envFile, place),
    tools: toolsOf(fields),
  });
}

function httpOf(fields: ClientEntry["fields"], url: unknown): object {
  const { type, headers, http_headers, env_http_headers, bearer_token_env_var: bearer } = fields;
  const variableNames = Object.entries(objectOf(env_http_headers));
  const all = {
    ...objectOf(headers),
    ...objectOf(http_headers),
    ...Object.fromEntries(variableNames.map(([header, name]) => [header, `\${${name}}`])),
    ...(typeof bearer === "string" ? { Authorization: `Bearer \${${bearer}}` } : {}),
  };
  return withoutUndefined({
    type: type === "sse" ? "sse" : undefined,
    url,
    headers: isObject(headers ?? {}) ? undefinedIfEmpty(all) : headers,
    oauth: undefinedIfEmpty(
      Object.fromEntries(signInOf(fields).filter(([key]) => SIGN_IN.includes(key))),
    ),
    tools: toolsOf(fields),
  });
}

/** Returns a client's settings for signing in at a server, with PML's keys. */
function signInOf(
  { oauth, auth = oauth, scopes }: ClientEntry["fields"],
): readonly (readonly [string, unknown])[] {
  const all = { ...withoutUndefined({ scopes }), ...objectOf(auth) };
  return Object.entries(all).map(([key, value]) => {
    const snakeCase = key.replace("callback", "redirect").replace(/[a-z](?=[A-Z])/g, "$&_")
      .toLowerCase();
    const isList = snakeCase === "scopes" && typeof value === "string";
    return [SIGN_IN.includes(snakeCase) ? snakeCase : key, isList ? value.split(" ") : value];
  });
}

/** Returns the tools to keep, or the settings that switch some off. */
function toolsOf(fields: ClientEntry["fields"]): unknown {
  const { tools, enabled_tools, includeTools } = fields;
  const enabledTools = enabled_tools ?? includeTools ?? tools;
  // Codex also has a table with a setting for each tool.
  const disabledInTable = Object.entries(objectOf(tools))
    .flatMap(([name, tool]) => objectOf(tool).enabled === false ? [name] : []);
  const disabledTools = [
    ...[fields.disabled_tools, fields.excludeTools, fields.disabledTools, disabledInTable],
  ].flatMap(textsOf);
  // Some clients write "*" for all tools.
  if (Array.isArray(enabledTools) && !enabledTools.includes("*")) {
    return enabledTools.filter((name) => !disabledTools.includes(name));
  }
  return undefinedIfEmpty(
    Object.fromEntries(disabledTools.map((name) => [name, { disabled: true }])),
  );
}

/** Returns a relative path with the variable of the workspace's folder before it. */
function toWorkspacePath(path: unknown, place: ClientPlace): unknown {
  const { isAbsolute, sep } = pathRules(place);
  if (typeof path !== "string" || path === "" || isAbsolute(path) || path.startsWith("${")) {
    return path;
  }
  const names = path.replaceAll(sep, "/").replace(/^\.\//, "");
  return names === "." ? WORKSPACE_FOLDER : `${WORKSPACE_FOLDER}/${names}`;
}

function undefinedIfEmpty(value: object): object | undefined {
  return Object.keys(value).length === 0 ? undefined : value;
}

/** Returns a value with every string in it replaced by the result of a function. */
function mapStrings(value: unknown, fill: (text: string) => string): unknown {
  if (typeof value === "string") return fill(value);
  if (Array.isArray(value)) return value.map((each) => mapStrings(each, fill));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [key, mapStrings(each, fill)]),
  );
}

function fillVariables(
  text: string,
  { entry, place, unknown }: {
    readonly entry: ClientEntry;
    readonly place: ClientPlace;
    readonly unknown: Set<string>;
  },
): string {
  const braced = DOLLAR_CLIENTS.includes(entry.client ?? "")
    ? text.replace(/\$([A-Za-z_]\w*)/g, "${$1}")
    // Continue writes `${{ secrets.NAME }}`.
    : entry.client === "continue"
    ? text.replace(/\$\{\{\s*secrets\.([\w-]+)\s*\}\}/g, "${env:$1}")
    // opencode writes `{env:NAME}`, and `{file:PATH}`.
    : text.replace(/(?<!\$)\{((?:env|file):[^{}]*)\}/g, "${$1}");
  return braced.replace(/\$\{(?:(input|env):)?([^{}]*)\}/g, (all, from, name: string) => {
    if (from === "env" && place.environment.get(name) !== undefined) return `\${${name}}`;
    const value = from === "input" ? entry.defaults?.get(name) : undefined;
    const otherwise = value === undefined ? "" : `:-${value}`;
    if (from !== undefined) return `\${${variableNameFrom(name)}${otherwise}}`;
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
    if (OWN_REFERENCE.test(all)) return all;
    unknown.add(shownReference(all, name));
    return all;
  });
}

/** Returns a variable of a client for a text, without a part that may be a key. */
function shownReference(reference: string, name: string): string {
  if (CLIENT_REFERENCE.test(name) && !isRandom(name)) return reference;
  const kind = /^[A-Za-z]{1,30}(?=:)/.exec(name)?.[0];
  return kind === undefined ? "a variable" : `\${${kind}:…}`;
}

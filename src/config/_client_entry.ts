/**
 * Converts a server of a client's configuration to PML's form: the same keys and the same form of
 * variables.
 *
 * @module
 */

import { basename, resolve } from "node:path";
import { defined, isObject, objectOf, textsOf } from "../core/json.ts";
import { variableName } from "./_secret_words.ts";
import type { ClientEntry, ClientPlace } from "./clients.ts";
import type { HttpDefinition } from "./servers.ts";

/** A server in the form of PML's `mcpServers`, before the schema checked it. */
export interface ClientDefinition {
  readonly command?: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly type?: string;
  readonly url?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly oauth?: HttpDefinition["oauth"];
  readonly tools?: readonly string[];
}

/**
 * The result of a conversion: a definition and the keys it leaves out, or the reason why there is
 * none.
 */
export type Converted =
  | { readonly definition: ClientDefinition; readonly left: readonly string[] }
  | { readonly why: string };

const KINDS = ["stdio", "http", "sse", "streamable-http", "streamableHttp"];
const KNOWN =
  "type command args env cwd url serverUrl httpUrl headers http_headers env_http_headers env_vars \
bearer_token_env_var tools enabled_tools includeTools disabled enabled description timeout oauth \
auth scopes source".split(" ");
/** What PML knows of a sign-in. */
const SIGN_IN = ["client_id", "client_secret", "scopes", "redirect_port"];
/** Variables that PML itself replaces. */
const OURS = /^\$\{\w+(:-[^}]*)?\}$/;
const FOLDERS = /^(workspaceFolder|workspaceRoot|workspaceFolderBasename|userHome|pathSeparator)$/;

/** Converts an entry, or returns why PML cannot run the server. */
export function converted(entry: ClientEntry, place: ClientPlace): Converted {
  const { said } = entry;
  const type = said.type || "stdio";
  if (!KINDS.includes(type as string)) return { why: "PML serves no servers of this kind" };
  const url = said.url ?? said.serverUrl ?? said.httpUrl;
  if (url === undefined && said.command === undefined && said.settings !== undefined) {
    return { why: "an extension of the client brings it" };
  }
  const raw = url === undefined ? stdioOf(said) : httpOf(said, url);
  const unknown = new Set<string>();
  const fill = (text: string) => filled(text, { entry, place, unknown });
  const definition = strings(raw, fill) as ClientDefinition; // the schema checks it later
  if (unknown.size > 0) {
    return { why: `it uses ${[...unknown].join(", ")}, which only the client fills in` };
  }
  const left = [...Object.keys(said), ...signInOf(said).map(([key]) => key)]
    .filter((key) => ![...KNOWN, ...SIGN_IN].includes(key));
  const { cwd: folder, ...rest } = definition;
  const cwd = typeof folder === "string" ? resolve(place.root, folder) : folder;
  // A server without a folder of its own runs in the workspace.
  return { definition: cwd === undefined || cwd === place.root ? rest : { ...rest, cwd }, left };
}

function stdioOf(said: ClientEntry["said"]): object {
  const { command, args, env, cwd, env_vars } = said;
  // Codex lists variables that are passed on unchanged.
  const passed = textsOf(env_vars).map((name) => [name, `\${${name}}`]);
  const all = { ...objectOf(env), ...Object.fromEntries(passed) };
  return defined({
    command,
    args,
    env: isObject(env ?? {}) ? orNothing(all) : env,
    cwd,
    tools: toolsOf(said),
  });
}

function httpOf(said: ClientEntry["said"], url: unknown): object {
  const { type, headers, http_headers, env_http_headers, bearer_token_env_var: bearer } = said;
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
      Object.fromEntries(signInOf(said).filter(([key]) => SIGN_IN.includes(key))),
    ),
    tools: toolsOf(said),
  });
}

/** Returns what a client says of signing in at a server, by the keys of PML. */
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

function toolsOf({ tools, enabled_tools, includeTools }: ClientEntry["said"]): unknown {
  const named = enabled_tools ?? includeTools ?? tools;
  // Some clients write "*" for all tools.
  return Array.isArray(named) && !named.includes("*") ? named : undefined;
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
    if (from !== undefined) return `\${${variableName(name)}}`;
    if (OURS.test(all) && !FOLDERS.test(name)) return all;
    switch (name) {
      case "workspaceFolder":
      case "workspaceRoot":
        return "."; // the server runs in it
      case "workspaceFolderBasename":
        return basename(place.root);
      case "userHome":
        return place.environment.userHome;
      case "/":
      case "pathSeparator":
        return "/";
    }
    unknown.add(/^\w{1,30}/.exec(name)?.[0] ?? "a variable");
    return all;
  });
}

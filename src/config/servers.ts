/**
 * The servers that a person defines: in `private_mcps`, and in `mcpServers` as clients write it.
 *
 * @module
 */

import { dirname, resolve } from "node:path";
import type { OAuthSettings } from "../core/authorization.ts";
import { type JsonObject, quoted, visible } from "../core/json.ts";
import { isToolName, serverSlug, toolSlug } from "../core/tool_id.ts";
import type { ToolSetting, ToolSettings } from "../core/tool_settings.ts";
import type { ConfigDocument } from "./_document.ts";
import { addressProblem } from "./address.ts";
import type { DefinitionTexts } from "./expand.ts";
import type { workspaceSchema } from "./_schema.ts";
import type { Value } from "./_wanted.ts";
import type { Path } from "./_syntax.ts";

/** A server that a person defines. */
export type ServerDefinition = DenoDefinition | StdioDefinition | HttpDefinition;

/** A module in a file on this machine. */
export interface DenoDefinition {
  /** A module that runs in the sandbox. */
  readonly kind: "deno";
  /** The name. */
  readonly name: string;
  /** The name as it was written, if that is not valid for a server. */
  readonly title?: string;
  /** The absolute path of the file. */
  readonly path: string;
  /** Whether it runs confined. A module always does. */
  readonly confine?: boolean;
  /** The settings for its tools. */
  readonly settings?: ToolSettings;
}

/** A program that speaks MCP on its pipes. */
export interface StdioDefinition {
  /** A program on this machine. */
  readonly kind: "stdio";
  /** The name. */
  readonly name: string;
  /** The name as it was written, if that is not valid for a server. */
  readonly title?: string;
  /** The program. */
  readonly command: string;
  /** The arguments of the program. */
  readonly args: readonly string[];
  /** The environment as it was written: `${NAME}` is replaced when the server starts. */
  readonly env: Readonly<Record<string, string>>;
  /** The working folder: an absolute path, or one that begins with a variable. */
  readonly cwd?: string;
  /** The file with further variables: an absolute path, or one that begins with a folder variable. */
  readonly envFile?: string;
  /** The tools to keep, if they are listed. All others are ignored. */
  readonly tools?: readonly string[];
  /** The settings for its tools. */
  readonly settings?: ToolSettings;
  /** The time limit of its calls in milliseconds, in place of `limits.call_ms`. */
  readonly timeoutMs?: number;
  /** Whether it runs under Deno, with Deno's permissions. */
  readonly confine?: boolean;
  /**
   * Whether it counts as unconfined although it is confined: its grants name programs or paths to
   * write, and this machine has no layer that bounds them.
   */
  readonly isUnheld?: true;
}

/** A server that is reached over HTTP. */
export interface HttpDefinition {
  /** A server at a URL. */
  readonly kind: "http";
  /** The name. */
  readonly name: string;
  /** The name as it was written, if that is not valid for a server. */
  readonly title?: string;
  /** The URL. */
  readonly url: string;
  /** Whether the file says that the URL is one of HTTP+SSE. */
  readonly isSse?: boolean;
  /** The headers as they were written: `${NAME}` is replaced when a request is sent. */
  readonly headers: Readonly<Record<string, string>>;
  /** How one signs in. `${NAME}` in the secret is replaced. */
  readonly oauth?: OAuthSettings | undefined;
  /** The tools to keep, if they are listed. All others are ignored. */
  readonly tools?: readonly string[];
  /** The settings for its tools. */
  readonly settings?: ToolSettings;
  /** The time limit of its calls in milliseconds, in place of `limits.call_ms`. */
  readonly timeoutMs?: number;
  /** The file of authorities that are trusted for it as well; only in the person's file. */
  readonly ca?: string;
  /** The file of the certificate that PML shows it; only in the person's file. */
  readonly cert?: string;
  /** The file of the key of that certificate. */
  readonly key?: string;
}

type WorkspaceValues = Value<typeof workspaceSchema>;
type ServerSections = Partial<Pick<WorkspaceValues, "private_mcps" | "mcpServers">>;
type ServerEntry =
  (NonNullable<ServerSections["private_mcps"]> | NonNullable<ServerSections["mcpServers"]>)[string];

/** Returns the servers of both sections, with the names that they have in PML. */
export function serversOf(file: ConfigDocument<ServerSections>): readonly ServerDefinition[] {
  const servers = new Map<string, ServerDefinition>();
  for (const section of ["private_mcps", "mcpServers"] as const) {
    for (const [title, entry] of Object.entries<ServerEntry>(file.said[section] ?? {})) {
      const path = [section, title];
      if ("autoApprove" in entry || "alwaysAllow" in entry) {
        const said = "autoApprove and alwaysAllow are ignored: only rules allow calls";
        file.warn(`${section}.${visible(title)}: ${said}`);
      }
      if (isDisabled(entry)) continue;
      const server = define(entry, { title, path, file });
      if (servers.has(server.name)) {
        const found = `a second server "${server.name}"`;
        file.problem(path, { code: "NAME_CONFLICT", found, wanted: "a name of its own" });
      }
      servers.set(server.name, server);
    }
  }
  return [...servers.values()];
}

/** Returns the names of the disabled servers. No other server may take such a name. */
export function disabledIn({ said }: ConfigDocument<ServerSections>): readonly string[] {
  return Object.entries<ServerEntry>(said.mcpServers ?? {}).filter(([, entry]) => isDisabled(entry))
    .map(([title]) => serverSlug(title));
}

function isDisabled(entry: ServerEntry): boolean {
  return "disabled" in entry && entry.disabled === true;
}

/** No timer of the platform waits longer than 24 days, and `limits.call_ms` at most one. */
const LONGEST_CALL_MS = 86_400_000;

type DefinitionPlace = {
  readonly title: string;
  readonly path: Path;
  readonly file: ConfigDocument<ServerSections>;
};
type Settings = Readonly<Record<string, ToolSetting>>;

function define(entry: ServerEntry, from: DefinitionPlace): ServerDefinition {
  const { title, path, file } = from;
  const name = serverSlug(title);
  const names = name === title ? { name } : { name, title };
  // If the file is a link, paths in it are relative to the real file.
  const folder = dirname(file.realPath);
  const listed = Array.isArray(entry.tools) ? entry.tools : undefined;
  const of = entry.tools && !listed && settingsOf(entry.tools as Settings, from);
  const settings = of && { settings: { file: file.realPath, of } };
  if ("path" in entry) {
    const at = resolve(folder, entry.path);
    return { kind: "deno", ...names, path: at, confine: entry.confine, ...settings };
  }
  // A list may name a tool with or without its server, but not a tool of another server.
  const own = (tool: string) =>
    [name, title].some((each) => tool.startsWith(`${each}:`)) ? tool.replace(/^.*?:/, "") : tool;
  const tools = listed?.map((one) => own(typeof one === "string" ? one : one.name));
  const foreign = tools?.find((tool) => !isToolName(tool));
  if (foreign !== undefined) {
    const wanted = `tools of this server: "${name}:tool" or "tool"`;
    file.problem([...path, "tools"], { found: quoted(foreign), wanted });
  }
  const timeoutMs = "timeout" in entry ? timeoutOf(entry.timeout) : undefined;
  const limits = timeoutMs === undefined ? {} : { timeoutMs };
  if ("url" in entry) {
    const { type, url, headers = {}, oauth, ca, cert, key } = entry;
    const wanted = addressProblem(url);
    if (wanted !== undefined) {
      file.warn(`${path.map((part) => visible(`${part}`)).join(".")}.url is not ${wanted}`);
    }
    const isSse = type === "sse" || undefined;
    const at = { url, isSse, headers, oauth, ca, cert, key };
    return { kind: "http", ...names, ...at, tools, ...limits, ...settings };
  }
  const { command, args = [], env: written = {} } = "install" in entry ? entry.install : entry;
  const env = { ...requiredEnv(entry), ...written };
  const { cwd, envFile, confine } = entry;
  const at = (path: string) => path.startsWith("${") ? path : resolve(folder, path);
  const paths = { cwd: cwd && at(cwd), ...(envFile && { envFile: at(envFile) }) };
  const program = { command, args, env, ...paths, tools, confine };
  return { kind: "stdio", ...names, ...program, ...limits, ...settings };
}

/** Returns the variables that the entry of a registry requires, each with its own value. */
function requiredEnv(entry: ServerEntry): Readonly<Record<string, string>> {
  if (!("install" in entry)) return {};
  const names = [...entry.env_required ?? [], ...entry.install.env_required ?? []];
  return Object.fromEntries(names.map((name) => [name, `\${${name}}`]));
}

/**
 * Returns the milliseconds of a client's `timeout`; undefined if it is no number above 0. A number
 * below 1,000 is in seconds, as Cline has it: no client waits less than a second.
 */
export function timeoutOf(timeout: unknown): number | undefined {
  if (typeof timeout !== "number" || !(timeout > 0)) return undefined;
  return Math.min(Math.ceil(timeout < 1_000 ? timeout * 1_000 : timeout), LONGEST_CALL_MS);
}

/** Returns the texts of a program's definition in which variables are replaced. */
export function textsOfProgram(
  { command, args, env, cwd }: StdioDefinition,
): DefinitionTexts & Required<Pick<DefinitionTexts, "args" | "env">> {
  return {
    env,
    args: Object.fromEntries(args.entries()),
    // The name of the program itself is written out: policies and questions depend on it.
    ...(/[\\/][^\\/$]+$/.test(command) && { command: { "": command } }),
    ...(cwd !== undefined && { cwd: { "": cwd } }),
  };
}

/** Returns the settings of each tool. Reports problems, such as two tools with one name. */
function settingsOf(said: Settings, { path, file }: DefinitionPlace): ToolSettings["of"] {
  const of = new Map<string, ToolSetting>();
  const taken = new Set<string>();
  for (const [written, setting] of Object.entries(said)) {
    const at = [...path, "tools", written];
    const { rename } = setting;
    // A tool with an invalid name has another name in rules.
    const name = written === "*" || isToolName(written) ? written : toolSlug(written);
    const exact = setting.arguments && file.exactAt([...at, "arguments"]) as JsonObject;
    of.set(name, exact === undefined ? setting : { ...setting, arguments: exact });
    if (written === "*" && Object.keys(setting).some((key) => key !== "disabled")) {
      file.problem(at, {
        found: "more than disabled",
        wanted: "disabled alone, for every other tool",
      });
    }
    const folded = rename?.toLowerCase();
    if (folded !== undefined && taken.has(folded)) {
      const found = `a second tool that is renamed to ${quoted(rename ?? "")}`;
      file.problem([...at, "rename"], { found, wanted: "a name of its own" });
    }
    if (folded !== undefined) taken.add(folded);
  }
  return of;
}

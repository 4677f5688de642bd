/**
 * The servers that a person defines: `private_mcps`, and `mcpServers` as the clients write it.
 *
 * @module
 */

import { dirname, resolve } from "node:path";
import type { z } from "zod";
import { quoted, visible } from "../core/json.ts";
import { isToolName, serverSlug, toolSlug } from "../core/tool_id.ts";
import type { ToolSetting, ToolSettings } from "../core/tool_settings.ts";
import type { Document } from "./_document.ts";
import type { workspaceSchema } from "./_schema.ts";
import type { Path } from "./_syntax.ts";

/** A server that a person defines. */
export type ServerDefinition = DenoDefinition | StdioDefinition | HttpDefinition;

/** A module on this machine. */
export interface DenoDefinition {
  /** Code that runs in the sandbox. */
  readonly kind: "deno";
  /** Its name. */
  readonly name: string;
  /** The name as it was written, where that is none for a server. */
  readonly title?: string;
  /** Absolute. */
  readonly path: string;
  /** Whether it runs confined; a module always does. */
  readonly confine?: boolean;
  /** What is said of its tools. */
  readonly settings?: ToolSettings;
}

/** A command that speaks MCP on its pipes. */
export interface StdioDefinition {
  /** A program on this machine. */
  readonly kind: "stdio";
  /** Its name. */
  readonly name: string;
  /** The name as it was written, where that is none for a server. */
  readonly title?: string;
  /** The program. */
  readonly command: string;
  /** What it is started with. */
  readonly args: readonly string[];
  /** As written: `${NAME}` is filled in when the server starts. */
  readonly env: Readonly<Record<string, string>>;
  /** Absolute. */
  readonly cwd?: string;
  /** The only tools of it that count, where they are named. */
  readonly tools?: readonly string[];
  /** What is said of its tools. */
  readonly settings?: ToolSettings;
  /** Whether it runs under Deno with permissions. */
  readonly confine?: boolean;
}

/** A server spoken to over HTTP. */
export interface HttpDefinition {
  /** A server elsewhere. */
  readonly kind: "http";
  /** Its name. */
  readonly name: string;
  /** The name as it was written, where that is none for a server. */
  readonly title?: string;
  /** Its address. */
  readonly url: string;
  /** As written: `${NAME}` is filled in when a call goes out. */
  readonly headers: Readonly<Record<string, string>>;
  /** The only tools of it that count, where they are named. */
  readonly tools?: readonly string[];
  /** What is said of its tools. */
  readonly settings?: ToolSettings;
}

type Workspace = z.infer<ReturnType<typeof workspaceSchema>>;
type Said = Partial<Pick<Workspace, "private_mcps" | "mcpServers">>;
type Entry = (NonNullable<Said["private_mcps"]> | NonNullable<Said["mcpServers"]>)[string];

/** Gives the servers of both sections, by the names that they have here. */
export function serversOf(file: Document<Said>): readonly ServerDefinition[] {
  const servers = new Map<string, ServerDefinition>();
  for (const section of ["private_mcps", "mcpServers"] as const) {
    for (const [title, entry] of Object.entries<Entry>(file.said[section] ?? {})) {
      const path = [section, title];
      if ("autoApprove" in entry || "alwaysAllow" in entry) {
        const said = "autoApprove and alwaysAllow count for nothing: only rules allow";
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

/** Names the servers that are switched off: nobody else's server is called by such a name. */
export function disabledIn({ said }: Document<Said>): readonly string[] {
  return Object.entries<Entry>(said.mcpServers ?? {}).filter(([, entry]) => isDisabled(entry))
    .map(([title]) => serverSlug(title));
}

function isDisabled(entry: Entry): boolean {
  return "disabled" in entry && entry.disabled === true;
}

type From = { readonly title: string; readonly path: Path; readonly file: Document<Said> };
type Settings = Readonly<Record<string, ToolSetting>>;

function define(entry: Entry, from: From): ServerDefinition {
  const { title, path, file } = from;
  const name = serverSlug(title);
  const names = name === title ? { name } : { name, title };
  // Through a link, what the file names lies beside the real file, not beside the link.
  const folder = dirname(file.realPath);
  const listed = Array.isArray(entry.tools) ? entry.tools : undefined;
  const of = listed === undefined && entry.tools !== undefined
    ? settingsOf(entry.tools as Settings, from)
    : undefined;
  const settings = of === undefined ? {} : { settings: { file: file.realPath, of } };
  if ("path" in entry) {
    const at = resolve(folder, entry.path);
    return { kind: "deno", ...names, path: at, confine: entry.confine, ...settings };
  }
  // A list may name a tool with its server or without; it cannot name another server's.
  const own = (tool: string) =>
    [name, title].some((each) => tool.startsWith(`${each}:`)) ? tool.replace(/^.*?:/, "") : tool;
  const tools = listed?.map(own);
  const foreign = tools?.find((tool) => !isToolName(tool));
  if (foreign !== undefined) {
    const wanted = `tools of this server: "${name}:tool" or "tool"`;
    file.problem([...path, "tools"], { found: quoted(foreign), wanted });
  }
  if ("url" in entry) {
    const { url, headers = {} } = entry;
    return { kind: "http", ...names, url, headers, tools, ...settings };
  }
  const { command, args = [], env = {} } = "install" in entry ? entry.install : entry;
  const { cwd, confine } = entry;
  const at = cwd === undefined ? undefined : resolve(folder, cwd);
  return { kind: "stdio", ...names, command, args, env, cwd: at, tools, confine, ...settings };
}

/** Gives what is said of each tool; notes what cannot be, as two tools of one name. */
function settingsOf(said: Settings, { path, file }: From): ToolSettings["of"] {
  const of = new Map<string, ToolSetting>();
  const taken = new Set<string>();
  for (const [written, setting] of Object.entries(said)) {
    const at = [...path, "tools", written];
    const { rename } = setting;
    // Rules know a tool with an odd name by another one.
    of.set(written === "*" || isToolName(written) ? written : toolSlug(written), setting);
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

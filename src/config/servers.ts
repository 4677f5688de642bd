/**
 * The servers that a user defines: in `private_mcps`, and in `mcpServers` as clients write it.
 *
 * @module
 */

import { dirname, resolve } from "node:path";
import { isObject, type JsonObject, quoted, visible } from "../core/json.ts";
import { isToolName, serverSlug, toolSlug } from "../core/tool_id.ts";
import type { ToolSetting, ToolSettings } from "../core/tool_settings.ts";
import type { ConfigDocument } from "./_document.ts";
import type { ServerDefinition } from "../servers/kind.ts";
import { kindOfType } from "../servers/kinds.ts";
import type { Path } from "../core/value_schema.ts";

/** An entry of a file, with the keys that all kinds of servers have. */
export interface ServerEntry {
  readonly type: string;
  readonly tools?: readonly (string | { readonly name: string })[] | Settings;
  readonly timeout?: unknown;
  readonly disabled?: boolean;
  readonly autoApprove?: unknown;
  readonly alwaysAllow?: unknown;
}

/** The sections that define servers. */
interface ServerSections {
  readonly private_mcps?: Readonly<Record<string, ServerEntry>> | undefined;
  readonly mcpServers?: Readonly<Record<string, ServerEntry>> | undefined;
}

/** Returns the servers of both sections, with the names that they have in PML. */
export function serversOf(file: ConfigDocument<ServerSections>): readonly ServerDefinition[] {
  const servers = new Map<string, ServerDefinition>();
  for (const section of ["private_mcps", "mcpServers"] as const) {
    for (const [title, entry] of Object.entries<ServerEntry>(file.content[section] ?? {})) {
      const path = [section, title];
      if ("autoApprove" in entry || "alwaysAllow" in entry) {
        const message = "autoApprove and alwaysAllow are ignored: only rules allow calls";
        file.warn(`${section}.${visible(title)}: ${message}`);
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
export function disabledNames({ content }: ConfigDocument<ServerSections>): readonly string[] {
  return Object.entries<ServerEntry>(content.mcpServers ?? {}).filter(([, entry]) =>
    isDisabled(entry)
  )
    .map(([title]) => serverSlug(title));
}

function isDisabled(entry: ServerEntry): boolean {
  return entry.disabled === true;
}

/** The maximum of a client's `timeout`: one day, as for `limits.call_ms`. */
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
  // If the file is a link, paths in it are relative to the real file.
  const folder = dirname(file.realPath);
  const listed = Array.isArray(entry.tools) ? entry.tools : undefined;
  const of = entry.tools && !listed && settingsOf(entry.tools as Settings, from);
  // A list may name a tool with or without its server, but not a tool of another server.
  const withoutServer = (tool: string) =>
    [name, title].some((each) => tool.startsWith(`${each}:`)) ? tool.replace(/^.*?:/, "") : tool;
  const tools = listed?.map((tool) => withoutServer(typeof tool === "string" ? tool : tool.name));
  const otherTool = tools?.find((tool) => !isToolName(tool));
  if (otherTool !== undefined) {
    const wanted = `tools of this server: "${name}:tool" or "tool"`;
    file.problem([...path, "tools"], { found: quoted(otherTool), wanted });
  }
  const timeoutMs = timeoutOf(entry.timeout);
  const { kind, read } = kindOfType(entry.type);
  const definition = read({
    json: entry,
    names: name === title ? { name } : { name, title },
    tools,
    settings: of ? { settings: { file: file.realPath, of } } : {},
    limits: timeoutMs === undefined ? {} : { timeoutMs },
    pathOf: (path) => resolve(folder, path),
    warn: (key, message) =>
      file.warn(`${[...path, key].map((part) => visible(`${part}`)).join(".")} ${message}`),
  });
  return { kind, ...definition };
}

/**
 * Returns the milliseconds of a client's `timeout`; undefined if it is not a number above 0. A
 * number below 1,000 is in seconds, as in Cline: no client waits less than a second.
 */
export function timeoutOf(timeout: unknown): number | undefined {
  if (typeof timeout !== "number" || !(timeout > 0)) return undefined;
  return Math.min(Math.ceil(timeout < 1_000 ? timeout * 1_000 : timeout), LONGEST_CALL_MS);
}

/** Returns whether a value contains an infinite number. A number that keeps its text is finite. */
function hasInfinite(value: unknown): boolean {
  if (value === Infinity || value === -Infinity) return true;
  const items = Array.isArray(value) ? value : isObject(value) ? Object.values(value) : [];
  return items.some(hasInfinite);
}

/** Returns the settings of each tool. Reports problems, such as two tools with one name. */
function settingsOf(settings: Settings, { path, file }: DefinitionPlace): ToolSettings["of"] {
  const of = new Map<string, ToolSetting>();
  const newNames = new Set<string>();
  for (const [written, setting] of Object.entries(settings)) {
    const at = [...path, "tools", written];
    const { rename } = setting;
    // Rules name a tool with an invalid name by its slug.
    const name = written === "*" || isToolName(written) ? written : toolSlug(written);
    const exact = setting.arguments && file.exactAt([...at, "arguments"]) as JsonObject;
    of.set(name, exact === undefined ? setting : { ...setting, arguments: exact });
    for (const [key, value] of Object.entries(exact ?? {})) {
      if (!hasInfinite(value)) continue;
      const found = "a number that is not finite"; // YAML writes one as `.inf`
      file.problem([...at, "arguments", key], { found, wanted: "a JSON value" });
    }
    if (written === "*" && Object.keys(setting).some((key) => key !== "disabled")) {
      file.problem(at, {
        found: "more than disabled",
        wanted: "disabled alone, for every other tool",
      });
    }
    const lowerCaseName = rename?.toLowerCase();
    if (lowerCaseName !== undefined && newNames.has(lowerCaseName)) {
      const found = `a second tool that is renamed to ${quoted(rename ?? "")}`;
      file.problem([...at, "rename"], { found, wanted: "a name of its own" });
    }
    if (lowerCaseName !== undefined) newNames.add(lowerCaseName);
  }
  return of;
}

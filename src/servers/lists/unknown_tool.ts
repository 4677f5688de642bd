/**
 * Creates the errors for names of unknown tools and servers.
 *
 * @module
 */

import { PmlError } from "../../core/errors.ts";
import { quoted, visible } from "../../core/json.ts";
import { isForModel } from "../../protocol/apps.ts";
import { nearName } from "../../core/near_name.ts";
import { isToolName, type ToolId, toolId } from "../../core/tool_id.ts";
import { settingOf } from "../../core/tool_settings.ts";
import { type Catalog, WHOLE_SERVER } from "../../search/catalog.ts";
import type { Servers } from "./servers.ts";

/** The hint for a name that no tool has. */
export const SEARCH_HINT = "Find its name with `search`";
/** The maximum number of tools that a message names. */
const NAMED_MAX = 20;
/** The maximum number of tools whose names are compared with an unknown name. */
const COMPARED_MAX = 1_000;

type Facts = Pick<Servers, "unknownToolFacts">;

/**
 * Returns the error `UNKNOWN_TOOL`. The message lists tools of the server, and suggests the most
 * similar tool or server that exists. It never names a denied tool or server.
 */
export function unknownTool(name: string, servers: Facts): PmlError {
  const { entries, host } = servers.unknownToolFacts;
  const { catalog, policy } = host;
  host.onUnknown?.(name);
  const { server, tool } = partsOf(name);
  const { rejected = [], source } = entries.get(server) ?? {};
  const disablingFile = source === undefined ? policy?.fileThatDisables(server) : undefined;
  if (disablingFile !== undefined && policy?.now.config.restrictions?.identity === undefined) {
    return policy?.whyForbidden(server)?.error ??
      disabledError(name, { what: quoted(server), file: disablingFile });
  }
  const { settings } = source ?? {};
  if (settings !== undefined && settingOf(settings, tool)?.disabled === true) {
    const key = `tools.${tool}.disabled`;
    return disabledError(name, { what: "the tool", file: settings.file, key });
  }
  const rejection = rejected.find((one) => one.name === tool);
  const entry = catalog.get(toolId(server, tool));
  const isOfPages = rejection === undefined && entry !== undefined && !isForModel(entry.tool) &&
    isShown(entry.id, servers);
  const why = isOfPages ? "only pages of its server call it" : rejection?.reason;
  const what = tool === WHOLE_SERVER ? `server ${quoted(server)}` : `tool ${quoted(name)}`;
  return new PmlError(
    "UNKNOWN_TOOL",
    `Cannot find the ${what}${why ? `: ${why}` : suggestionText(name, servers)}`,
    {
      hint: isOfPages ? "Use a tool of its server that shows a page" : SEARCH_HINT,
    },
  );
}

/** Returns the parts of an unknown name. Without a separator, it may name a tool or a server. */
function partsOf(name: string): { readonly server: string; readonly tool: string } {
  const [server = "", tool = ""] = name.replace(/^mcp__pml__/, "").split(/:|__/, 2);
  return { server, tool };
}

function isShown(id: ToolId, { unknownToolFacts: { host: { policy } } }: Facts): boolean {
  return policy?.now.judge(id).kind !== "deny";
}

/** Returns the names of a server's tools that models see. */
function shownTools(server: string, servers: Facts): readonly string[] {
  return servers.unknownToolFacts.host.catalog.toolsOf(server)
    .filter(({ id, tool }) => isForModel(tool) && isShown(id, servers))
    .map(({ tool }) => tool.name).filter((name) => name !== WHOLE_SERVER);
}

/** Returns the end of the message: the tools that have the name or belong to the server. */
function suggestionText(name: string, servers: Facts): string {
  const { catalog } = servers.unknownToolFacts.host;
  const same = findToolsNamed(name, catalog).filter((id) => isShown(id, servers))
    .map((id) => quoted(id));
  if (same.length > 1) {
    return `: ${same.length} servers have it, ${same.slice(0, NAMED_MAX).join(", ")}`;
  }
  const { server } = partsOf(name);
  const tools = shownTools(server, servers);
  const list = tools.length === 0
    ? ""
    : `; ${quoted(server)} has ${tools.slice(0, NAMED_MAX).join(", ")}`;
  const near = nearest(name, servers);
  return near === undefined ? list : `${list}. Did you mean ${near}?`;
}

/** Returns the tool or server that is most similar to an unknown name, and exists. */
function nearest(name: string, servers: Facts): string | undefined {
  const { entries, host: { catalog } } = servers.unknownToolFacts;
  const { server, tool } = partsOf(name);
  // A registry may offer the tools of a server that is not configured.
  const isKnown = entries.has(server) || shownTools(server, servers).length > 0;
  if (tool === "" && !isKnown) {
    const shown = catalog.list().slice(0, COMPARED_MAX)
      .filter(({ id, tool }) => isForModel(tool) && isShown(id, servers));
    const near = nearName(name, shown.map(({ tool }) => tool.name));
    const entry = shown.find(({ tool }) => tool.name === near);
    if (entry !== undefined) return quoted(entry.id);
  }
  const nearby = isKnown ? server : nearServer(name, servers);
  if (nearby === undefined) return undefined;
  const near = tool === "" ? undefined : nearName(tool, shownTools(nearby, servers));
  if (near !== undefined) return quoted(toolId(nearby, near));
  if (isKnown) return undefined;
  return tool === WHOLE_SERVER ? quoted(nearby) : `the server ${quoted(nearby)}`;
}

/**
 * Returns the error for a name without a server, if several servers with pages have such a tool.
 */
export function severalTools(
  name: string,
  ids: readonly ToolId[],
  { unknownToolFacts: { host: { policy } } }: Facts,
): PmlError {
  const names = ids.filter((id) => policy?.now.judge(id).kind !== "deny").map((id) => quoted(id));
  const list = names.slice(0, NAMED_MAX).join(", ");
  const why = `several servers with pages have it: ${list}`;
  return new PmlError("UNKNOWN_TOOL", `Cannot find the tool ${quoted(name)}: ${why}`, {
    hint: "Use the whole name of one of them",
  });
}

/** Returns the ids of all tools of this name that models see, on any server. */
export function findToolsNamed(name: string, catalog: Catalog): readonly ToolId[] {
  if (!isToolName(name)) return [];
  return catalog.list().filter(({ tool }) => tool.name === name && isForModel(tool))
    .map(({ id }) => id);
}

/** Returns the message for a server that does not exist, or whose tools are all denied. */
export function unknownServer(server: string, servers: Facts): string {
  const near = nearServer(server, servers);
  return `There is no server ${quoted(server)}${near ? `. Did you mean ${quoted(near)}?` : ""}`;
}

/**
 * Returns the name of a server that is most similar to the server in a tool id. Leaves out servers
 * on which a rule denies the tool.
 */
export function nearServer(
  name: string,
  { unknownToolFacts: { entries, host: { policy } } }: Facts,
): string | undefined {
  const { server, tool } = partsOf(name);
  const names = [...entries.keys()].filter((candidate) =>
    candidate !== server && policy?.now.judge(toolId(candidate, tool || "*")).kind !== "deny"
  );
  return nearName(server, names);
}

function disabledError(
  name: string,
  { what, file, key = "disabled" }: {
    readonly what: string;
    readonly file: string;
    /** The setting of the server's entry. */
    readonly key?: string;
  },
): PmlError {
  const message = `Cannot use ${quoted(name)}: ${what} is disabled in ${quoted(file, 400)}`;
  return new PmlError("UNKNOWN_TOOL", message, {
    hint: `Remove \`${visible(key)}\` from its entry there`,
    detail: { file },
  });
}

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

/** The maximum number of tools that a message names. */
const NAMED_MAX = 20;

/**
 * Returns the error `UNKNOWN_TOOL`. The message lists tools of the server, and suggests the most
 * similar name of a tool or server. It never names a denied tool or server.
 */
export function unknownTool(
  name: string,
  { unknownToolFacts: around }: Pick<Servers, "unknownToolFacts">,
): PmlError {
  const { entries, host } = around;
  const { catalog, policy } = host;
  host.onUnknown?.(name);
  const [server = "", tool = ""] = name.split(/:|__/, 2);
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
  const isOfPages = rejection === undefined && isForPagesOnly();
  const why = isOfPages ? "only pages of its server call it" : rejection?.reason;
  const what = tool === WHOLE_SERVER ? `server ${quoted(server)}` : `tool ${quoted(name)}`;
  return new PmlError(
    "UNKNOWN_TOOL",
    `Cannot find the ${what}${why ? `: ${why}` : suggestionText()}`,
    {
      hint: isOfPages
        ? "Use a tool of its server that shows a page"
        : "Find its name with `search`",
    },
  );

  function isForPagesOnly(): boolean {
    const entry = catalog.get(toolId(server, tool));
    return entry !== undefined && !isForModel(entry.tool) && isShown(entry.id);
  }

  function isShown(id: ToolId): boolean {
    return policy?.now.judge(id).kind !== "deny";
  }

  function suggestionText(): string {
    const same = findToolsNamed(name, catalog).filter(isShown).map((id) => quoted(id));
    if (same.length > 1) {
      return `: ${same.length} servers have it, ${same.slice(0, NAMED_MAX).join(", ")}`;
    }
    const tools = catalog.toolsOf(server).filter(({ id, tool }) => isShown(id) && isForModel(tool))
      .map(({ tool }) => tool.name);
    const list = tools.length === 0
      ? ""
      : `; ${quoted(server)} has ${tools.slice(0, NAMED_MAX).join(", ")}`;
    const near = source === undefined
      ? nearServer(name, { unknownToolFacts: around })
      : nearName(tool, tools);
    if (near === undefined) return list;
    const suggestion = source === undefined ? `${near}:${tool}` : `${server}:${near}`;
    return `${list}. Did you mean ${quoted(suggestion)}?`;
  }
}

/**
 * Returns the error for a name without a server, if several servers with pages have such a tool.
 */
export function severalTools(
  name: string,
  ids: readonly ToolId[],
  { unknownToolFacts: { host: { policy } } }: Pick<Servers, "unknownToolFacts">,
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
export function unknownServer(server: string, servers: Pick<Servers, "unknownToolFacts">): string {
  const near = nearServer(server, servers);
  return `There is no server ${quoted(server)}${near ? `. Did you mean ${quoted(near)}?` : ""}`;
}

/**
 * Returns the name of a server that is most similar to the server in a tool id. Leaves out servers
 * on which a rule denies the tool.
 */
export function nearServer(
  name: string,
  { unknownToolFacts: { entries, host: { policy } } }: Pick<Servers, "unknownToolFacts">,
): string | undefined {
  const [server = "", tool = ""] = name.split(/:|__/, 2);
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

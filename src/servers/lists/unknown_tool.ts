/**
 * Creates the error for the name of an unknown tool.
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

/** The maximum number of tools of the server that a message names. */
const NAMED_MAX = 20;

/**
 * Returns `UNKNOWN_TOOL`. The message lists tools of the server, and the nearest name of a tool or
 * server. It names nothing that is denied.
 */
export function unknownTool(name: string, { around }: Pick<Servers, "around">): PmlError {
  const { entries, host } = around;
  const { catalog, policy } = host;
  host.onUnknown?.(name);
  const [server = "", tool = ""] = name.split(/:|__/, 2);
  const { rejected = [], source } = entries.get(server) ?? {};
  const off = source === undefined ? policy?.disabledIn(server) : undefined;
  if (off !== undefined && policy?.now.config.narrowing?.identity === undefined) {
    return policy?.forbidden(server)?.error ?? disabled(name, { what: quoted(server), file: off });
  }
  const { settings } = source ?? {};
  if (settings !== undefined && settingOf(settings, tool)?.disabled === true) {
    const key = `tools.${tool}.disabled`;
    return disabled(name, { what: "the tool", file: settings.file, key });
  }
  const rejection = rejected.find((one) => one.name === tool);
  const isOfPages = rejection === undefined && isForPagesAlone();
  const why = isOfPages ? "only pages of its server call it" : rejection?.reason;
  const what = tool === WHOLE_SERVER ? `server ${quoted(server)}` : `tool ${quoted(name)}`;
  return new PmlError(
    "UNKNOWN_TOOL",
    `Cannot find the ${what}${why ? `: ${why}` : others()}`,
    {
      hint: isOfPages
        ? "Use a tool of its server that shows a page"
        : "Find its name with `search`",
    },
  );

  function isForPagesAlone(): boolean {
    const entry = catalog.get(toolId(server, tool));
    return entry !== undefined && !isForModel(entry.tool) && isShown(entry.id);
  }

  function isShown(id: ToolId): boolean {
    return policy?.now.judge(id).kind !== "deny";
  }

  function others(): string {
    const same = toolsNamed(name, catalog).filter(isShown).map((id) => quoted(id));
    if (same.length > 1) {
      return `: ${same.length} servers have it, ${same.slice(0, NAMED_MAX).join(", ")}`;
    }
    const tools = catalog.toolsOf(server).filter(({ id, tool }) => isShown(id) && isForModel(tool))
      .map((one) => one.tool.name);
    const list = tools.length === 0
      ? ""
      : `; ${quoted(server)} has ${tools.slice(0, NAMED_MAX).join(", ")}`;
    const near = source === undefined ? nearServer(name, { around }) : nearName(tool, tools);
    if (near === undefined) return list;
    const suggestion = source === undefined ? `${near}:${tool}` : `${server}:${near}`;
    return `${list}. Did you mean ${quoted(suggestion)}?`;
  }
}

/** Returns the error for a bare name that several tools for pages have. */
export function severalTools(
  name: string,
  ids: readonly ToolId[],
  { around: { host: { policy } } }: Pick<Servers, "around">,
): PmlError {
  const names = ids.filter((id) => policy?.now.judge(id).kind !== "deny").map((id) => quoted(id));
  const list = names.slice(0, NAMED_MAX).join(", ");
  const why = `several servers with pages have it: ${list}`;
  return new PmlError("UNKNOWN_TOOL", `Cannot find the tool ${quoted(name)}: ${why}`, {
    hint: "Use the whole name of one of them",
  });
}

/** Returns the ids of all tools that models see by this name, of any server. */
export function toolsNamed(name: string, catalog: Catalog): readonly ToolId[] {
  if (!isToolName(name)) return [];
  return catalog.list().filter(({ tool }) => tool.name === name && isForModel(tool))
    .map(({ id }) => id);
}

/** Returns the text for a server that does not exist, or of which every tool is denied. */
export function unknownServer(server: string, servers: Pick<Servers, "around">): string {
  const near = nearServer(server, servers);
  return `There is no server ${quoted(server)}${near ? `. Did you mean ${quoted(near)}?` : ""}`;
}

/** Returns the server with the nearest name to that in a tool id, if it may run such a tool. */
export function nearServer(
  name: string,
  { around: { entries, host: { policy } } }: Pick<Servers, "around">,
): string | undefined {
  const [server = "", tool = ""] = name.split(/:|__/, 2);
  const names = [...entries.keys()].filter((one) =>
    one !== server && policy?.now.judge(toolId(one, tool || "*")).kind !== "deny"
  );
  return nearName(server, names);
}

function disabled(
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

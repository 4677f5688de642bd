/**
 * All known tools of all known servers, by id and by the names that clients see.
 *
 * @module
 */

import type { ToolDefinition } from "../protocol/tool.ts";
import {
  isToolName,
  NO_TOOL_NAME,
  shownId,
  type ToolId,
  toolId,
  wireName,
} from "../core/tool_id.ts";

/** The name of the only tool of an offered server whose tools the registry does not list. */
export const WHOLE_SERVER = "@tools";

const MOST_TOOLS = 50_000;
/** Definitions that are nested deeper could not be written to a client either. */
const DEEPEST = 200;

/** A server in the catalog, as search results show it. */
export interface CatalogServer {
  /** The name. */
  readonly name: string;
  /** The name for users. */
  readonly title?: string;
  /** The source of the server: `builtin`, `private`, `registry` and others. */
  readonly origin: string;
  /** Whether the server ships with PML. */
  readonly isShipped?: boolean;
  /** A description. */
  readonly description?: string;
  /**
   * Whether a registry or the cloud offers the server, and it is not configured on this machine.
   */
  readonly isOffer?: boolean;
  /** Whether the user is asked before its first use, even if a rule allows it. */
  readonly asksFirst?: boolean;
}

/** A tool with its id and its server. */
export interface CatalogEntry {
  /** The name in rules. */
  readonly id: ToolId;
  /** The tool as clients see it. */
  readonly tool: ToolDefinition;
  /** Whether its server now lists a different definition, which is not approved. */
  readonly isChanged?: boolean;
  readonly server: CatalogServer;
}

/** A tool of the catalog. */
export interface CatalogTool extends CatalogEntry {
  /** The tool as its server defines it. An approval binds to this. */
  readonly own: ToolDefinition;
}

/** How the catalog changes tools, by their definitions from the server. */
export interface CatalogChanges {
  /** The definition that clients see, or the reason why the tool cannot be used. */
  readonly changes?: ReadonlyMap<ToolDefinition, ToolDefinition | string>;
  /** The tools that are marked as changed. */
  readonly unapproved?: Pick<ReadonlyMap<ToolDefinition, unknown>, "has">;
}

/** A tool that the catalog refused, and the reason. */
export interface RejectedTool {
  readonly name: string;
  readonly reason: string;
}

/** Contains all known tools. */
export class Catalog {
  readonly #toolsByServer = new Map<string, readonly CatalogEntry[]>();
  readonly #entries = new Map<ToolId, CatalogTool>();
  readonly #wireNames = new Map<string, ToolId>();
  #sorted: readonly CatalogEntry[] | undefined;

  /** Replaces the tools of a server. Returns the tools that were refused, with the reasons. */
  set(
    server: CatalogServer,
    tools: readonly ToolDefinition[],
    { changes = new Map(), unapproved = new Map() }: CatalogChanges = {},
  ): readonly RejectedTool[] {
    const rejected: RejectedTool[] = [];
    const names = new Set<string>();
    this.remove(server.name);
    const entries = tools.flatMap((own) => {
      const change = changes.get(own) ?? own;
      const [tool, unusable] = typeof change === "string" ? [own, change] : [change];
      const isChanged = unapproved.has(own);
      const id = toolId(server.name, own.name);
      const entry = { id, tool, own, server, ...(isChanged && { isChanged }) };
      const lowerCase = tool.name.toLowerCase();
      // Users and models may confuse names that differ only in upper and lower case.
      const isDuplicate = names.has(lowerCase) && !this.#entries.has(entry.id);
      const reason = unusable ??
        (isDuplicate ? "another tool has this name in another case" : undefined) ??
        (isNestedWithin(DEEPEST, tool) ? this.#add(entry) : "it is nested too deep");
      if (reason === undefined) names.add(lowerCase);
      else rejected.push({ name: own.name, reason });
      return reason === undefined ? [entry] : [];
    });
    this.#toolsByServer.set(server.name, entries);
    return rejected;
  }

  /** Removes a server and its tools. */
  remove(server: string): void {
    this.#sorted = undefined;
    for (const entry of this.toolsOf(server)) {
      this.#entries.delete(entry.id);
      this.#wireNames.delete(wireName(shownId(entry)));
    }
    this.#toolsByServer.delete(server);
  }

  /** Returns a tool by its id. */
  get(id: ToolId): CatalogTool | undefined {
    return this.#entries.get(id);
  }

  /** Returns the id of a tool by its name in `tools/list`. */
  byWireName(name: string): ToolId | undefined {
    return this.#wireNames.get(name);
  }

  /** Returns the tools of one server, in the order of its list. */
  toolsOf(server: string): readonly CatalogEntry[] {
    return this.#toolsByServer.get(server) ?? [];
  }

  /** Returns all tools, sorted by id. Returns the same array until the catalog changes. */
  list(): readonly CatalogEntry[] {
    this.#sorted ??= [...this.#entries.values()].sort(byId);
    return this.#sorted;
  }

  #add(entry: CatalogTool): string | undefined {
    const isWholeServer = entry.server.isOffer === true && entry.tool.name === WHOLE_SERVER;
    if (!isToolName(entry.tool.name) && !isWholeServer) return NO_TOOL_NAME;
    if (this.#entries.has(entry.id)) return "the server lists another tool of this name";
    if (this.#entries.size >= MOST_TOOLS) return `the catalog already contains ${MOST_TOOLS} tools`;
    const wire = wireName(shownId(entry));
    const otherId = this.#wireNames.get(wire);
    // Shortened names end in a hash of eight digits, which is short enough to forge.
    if (otherId !== undefined) return `clients cannot distinguish it from "${otherId}"`;
    this.#entries.set(entry.id, entry);
    this.#wireNames.set(wire, entry.id);
    return undefined;
  }
}

function isNestedWithin(depth: number, value: unknown): boolean {
  if (typeof value !== "object" || value === null) return true;
  return depth > 0 && Object.values(value).every((inner) => isNestedWithin(depth - 1, inner));
}

function byId(a: CatalogEntry, b: CatalogEntry): number {
  return a.id < b.id ? -1 : 1;
}

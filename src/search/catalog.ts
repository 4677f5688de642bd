/**
 * Every known tool of every known server, with the way back from the names that clients see.
 *
 * @module
 */

import type { ToolDefinition } from "../core/tool.ts";
import { isToolName, shownId, type ToolId, toolId, wireName } from "../core/tool_id.ts";

/** Stands for the tools of a server that offers some, and of which nobody knows which. */
export const WHOLE_SERVER = "@tools";

const MOST_TOOLS = 50_000;
/** Deeper definitions could not be written to a client either. */
const DEEPEST = 200;

/** A server as the catalog knows it. */
export interface CatalogServer {
  /** Its name. */
  readonly name: string;
  /** Its name for people. */
  readonly title?: string;
  /** Where it comes from: `builtin`, `private`, `registry` and others. */
  readonly origin: string;
  /** What it is. */
  readonly description?: string;
  /** Whether a registry offers it, and nobody has approved it yet. */
  readonly isOffer?: boolean;
}

/** A tool with its id and its server. */
export interface CatalogEntry {
  /** The name that rules know it by. */
  readonly id: ToolId;
  /** The tool as clients see it. */
  readonly tool: ToolDefinition;
  readonly server: CatalogServer;
}

/** A tool of the catalog. */
export interface KnownTool extends CatalogEntry {
  /** The tool as its server has it, which is what is pinned. */
  readonly own: ToolDefinition;
}

/** A tool that the catalog did not take, and why. */
export interface RejectedTool {
  readonly name: string;
  readonly reason: string;
}

/** Holds every known tool. */
export class Catalog {
  readonly #shelves = new Map<string, readonly CatalogEntry[]>();
  readonly #entries = new Map<ToolId, KnownTool>();
  readonly #wireNames = new Map<string, ToolId>();
  #sorted: readonly CatalogEntry[] | undefined;

  /**
   * Puts a server's tools in place of those known of it, and gives all that it did not take, with
   * the reasons. `changes` has what clients see of a tool in its place, or why it cannot be used.
   */
  set(
    server: CatalogServer,
    tools: readonly ToolDefinition[],
    changes: ReadonlyMap<ToolDefinition, ToolDefinition | string> = new Map(),
  ): readonly RejectedTool[] {
    const rejected: RejectedTool[] = [];
    const names = new Set<string>();
    this.remove(server.name);
    const entries = tools.flatMap((own) => {
      const change = changes.get(own) ?? own;
      const [tool, unusable] = typeof change === "string" ? [own, change] : [change];
      const entry = { id: toolId(server.name, own.name), tool, own, server };
      const folded = tool.name.toLowerCase();
      // Two that differ by case alone are one to whoever reads them.
      const isTwin = names.has(folded) && !this.#entries.has(entry.id);
      const reason = unusable ??
        (isTwin ? "it differs from another by case alone" : undefined) ??
        (isWithin(DEEPEST, tool) ? this.#add(entry) : "it is nested too deep");
      if (reason === undefined) names.add(folded);
      else rejected.push({ name: own.name, reason });
      return reason === undefined ? [entry] : [];
    });
    this.#shelves.set(server.name, entries);
    return rejected;
  }

  /** Forgets a server and its tools. */
  remove(server: string): void {
    this.#sorted = undefined;
    for (const entry of this.toolsOf(server)) {
      this.#entries.delete(entry.id);
      this.#wireNames.delete(wireName(shownId(entry)));
    }
    this.#shelves.delete(server);
  }

  /** Gives a tool by its id. */
  get(id: ToolId): KnownTool | undefined {
    return this.#entries.get(id);
  }

  /** Gives the id that a name of `tools/list` stands for. */
  byWireName(name: string): ToolId | undefined {
    return this.#wireNames.get(name);
  }

  /** Gives the tools of one server, in the order it lists them. */
  toolsOf(server: string): readonly CatalogEntry[] {
    return this.#shelves.get(server) ?? [];
  }

  /** Gives every tool, by id; another list only after a change. */
  list(): readonly CatalogEntry[] {
    this.#sorted ??= [...this.#entries.values()].sort(byId);
    return this.#sorted;
  }

  #add(entry: KnownTool): string | undefined {
    const isWhole = entry.server.isOffer === true && entry.tool.name === WHOLE_SERVER;
    if (!isToolName(entry.tool.name) && !isWhole) {
      return "its name has other characters than the names of tools may have";
    }
    if (this.#entries.has(entry.id)) return "the server lists another tool of this name";
    if (this.#entries.size >= MOST_TOOLS) return `the catalog holds ${MOST_TOOLS} tools already`;
    const wire = wireName(shownId(entry));
    const taken = this.#wireNames.get(wire);
    // Shortened names end in a hash, and a hash of eight digits can be aimed at.
    if (taken !== undefined) return `clients could not tell it from "${taken}"`;
    this.#entries.set(entry.id, entry);
    this.#wireNames.set(wire, entry.id);
    return undefined;
  }
}

function isWithin(depth: number, value: unknown): boolean {
  if (typeof value !== "object" || value === null) return true;
  return depth > 0 && Object.values(value).every((inner) => isWithin(depth - 1, inner));
}

function byId(a: CatalogEntry, b: CatalogEntry): number {
  return a.id < b.id ? -1 : 1;
}

/**
 * Every server that is known, whether its tools are, and why not if they are not.
 *
 * @module
 */

import { asPmlError, PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import { splitToolId, type ToolId } from "../core/tool_id.ts";
import type { ToolDefinition } from "../core/tool.ts";
import { unusableTools } from "./_safe_schema.ts";
import type { Catalog, CatalogServer, RejectedTool } from "../search/catalog.ts";

/** How many of the tools that were left out are told of. */
const REJECTED_MAX = 5;

/** A server as its definition has it, and the way to its tools. */
export interface ServerSource extends CatalogServer {
  /** How it runs: `deno`, `stdio`, `http` or `cloud`. */
  readonly kind: string;
  /** Why its tools may not be asked for now; undefined when they may. */
  readonly blocked: () => string | undefined;
  /** Gives its tools; the same array as long as they are unchanged. */
  readonly load: () => Promise<readonly ToolDefinition[]>;
}

/** How a server stands, for people and models. */
export interface ServerState {
  readonly name: string;
  readonly kind: string;
  readonly origin: string;
  readonly state: "ready" | "unknown" | "blocked" | "failed";
  /** Why it is blocked or failed. */
  readonly why: string | undefined;
  readonly tools: number;
}

interface Entry {
  readonly source: ServerSource;
  tools: readonly ToolDefinition[] | undefined;
  failure: PmlError | undefined;
  /** Over when its tools are known, or once lists have waited for it long enough. */
  wait: Promise<unknown> | undefined;
  /** The tools that the catalog did not take, and why. */
  rejected: readonly RejectedTool[];
}

/** Knows the servers and fills the catalog with their tools. */
export class Servers {
  readonly #catalog: Catalog;
  readonly #waitMs: number;
  readonly #onLate: () => void;
  #entries = new Map<string, Entry>();

  /** Makes an empty set; a list waits at most `waitMs` for servers that were never asked; `onLate` tells of later ones. */
  constructor(catalog: Catalog, waitMs: number, onLate: () => void = () => {}) {
    this.#catalog = catalog;
    this.#waitMs = waitMs;
    this.#onLate = onLate;
  }

  /** Takes the servers of a new configuration; what is known of the old ones is asked again. */
  replace(sources: readonly ServerSource[]): void {
    for (const name of this.#entries.keys()) this.#catalog.remove(name);
    this.#entries = new Map(
      sources.map((
        source,
      ) => [source.name, {
        source,
        tools: undefined,
        failure: undefined,
        wait: undefined,
        rejected: [],
      }]),
    );
  }

  /**
   * Asks the servers whose tools are unknown, or all `again`, side by side; one that hangs delays no
   * other.
   */
  async prepare(only?: string, { again = false } = {}): Promise<void> {
    const unknown = [...this.#entries.values()].filter((entry) =>
      (again || entry.tools === undefined) && (only === undefined || entry.source.name === only) &&
      entry.source.blocked() === undefined
    );
    if (unknown.length === 0) return;
    let isOver = false;
    await Promise.all(unknown.map((entry) => {
      // A failure is kept in the entry and told by `states`.
      const load = this.#load(entry)
        .then((isNew) => isNew && isOver && this.#onLate(), () => {});
      if (again) entry.wait = undefined;
      return entry.wait ??= this.#inTime(load);
    }));
    isOver = true;
  }

  async #inTime(load: Promise<unknown>): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, this.#waitMs);
    await Promise.race([load, promise]);
    clearTimeout(timer);
  }

  /** Gives a tool's definition, loading its server first; throws UNKNOWN_TOOL or why it failed. */
  async definition(id: ToolId): Promise<ToolDefinition> {
    const { server } = splitToolId(id);
    const entry = this.#entries.get(server);
    if (entry !== undefined) await this.#loadApproved(entry);
    const known = this.#catalog.get(id);
    if (known !== undefined) return known.tool;
    throw this.unknown(id);
  }

  /** Makes the error for a name that is no tool; it says what the server does have. */
  unknown(name: string): PmlError {
    const [server = "", tool = ""] = name.split(/:|__/, 2);
    const { rejected = [] } = this.#entries.get(server) ?? {};
    const left = rejected.find((one) => one.name === tool);
    const tools = this.#catalog.toolsOf(server).map((one) => one.tool.name);
    const list = tools.length === 0 ? "" : `; "${server}" has ${tools.slice(0, 20).join(", ")}`;
    const has = left === undefined ? list : `: ${left.reason}`;
    return new PmlError("UNKNOWN_TOOL", `Cannot find the tool ${quoted(name)}${has}`, {
      hint: "Find its name with `search`",
    });
  }

  /** Tells how every server stands, by name. */
  states(): readonly ServerState[] {
    return [...this.#entries.values()].map(stateOf)
      .sort((one, other) => one.name < other.name ? -1 : 1);
  }

  // To read what a server says of itself is to run it.
  async #loadApproved(entry: Entry): Promise<void> {
    const why = entry.source.blocked();
    if (why === undefined) return void await this.#load(entry);
    throw new PmlError(
      "APPROVAL_REQUIRED",
      `Cannot read the tools of ${quoted(entry.source.name)}: ${why}`,
      { hint: "Call the tool itself: the question to the person comes with it" },
    );
  }

  /** Tells whether its tools are others than before. */
  async #load(entry: Entry): Promise<boolean> {
    try {
      const tools = await entry.source.load();
      entry.failure = undefined;
      if (entry.tools === tools) return false;
      const unusable = await unusableTools(tools);
      if (entry.tools === tools || this.#entries.get(entry.source.name) !== entry) return false;
      entry.tools = tools;
      entry.rejected = this.#catalog.set(entry.source, tools, unusable);
      return true;
    } catch (error) {
      entry.failure = asPmlError(error);
      throw entry.failure;
    }
  }
}

function stateOf({ source, tools, failure, rejected }: Entry): ServerState {
  const blocked = source.blocked();
  const left = rejected.slice(0, REJECTED_MAX)
    .map(({ name, reason }) => `left out ${quoted(name)}: ${reason}`).join("; ") +
    (rejected.length > REJECTED_MAX ? ` and ${rejected.length - REJECTED_MAX} more` : "");
  const why = blocked ?? failure?.message ?? (left || undefined);
  const known = tools === undefined ? "unknown" : "ready";
  const trouble = failure === undefined ? known : "failed";
  return {
    name: source.name,
    kind: source.kind,
    origin: source.origin,
    state: blocked === undefined ? trouble : "blocked",
    why,
    tools: (tools?.length ?? 0) - rejected.length,
  };
}

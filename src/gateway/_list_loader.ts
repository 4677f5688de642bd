/**
 * Loads the lists of servers. A list is the one for the client that asked for it: a server may show
 * another client another one.
 *
 * @module
 */

import { asPmlError } from "../core/errors.ts";
import { externalTools, instructionsIn, type ListItem, type ListName } from "../core/lists.ts";
import type { ToolDefinition } from "../core/tool.ts";
import type { Catalog } from "../search/catalog.ts";
import type { Entry } from "./_entry.ts";

/** How often a list is asked for while one client after the other asks something else. */
const LOADS_MAX = 3;

/** What loading needs to know. */
export interface ListLoaderOptions {
  /** Takes the tools. */
  readonly catalog: Catalog;
  /** Counts the clients that were there; a list is as old as the client it was asked for. */
  readonly age: () => number;
  /** Tells whether a server is still the one of its name. */
  readonly isThere: (entry: Entry) => boolean;
}

/** A list as it was answered, and as it was known when it was asked for. */
interface Loaded {
  readonly list: ListName;
  readonly items: readonly ListItem[];
  /** The instructions of the server, with a list of tools. */
  readonly said: ToolDefinition | undefined;
  readonly before: readonly ListItem[] | undefined;
}

/** Loads lists into entries, and tools into the catalog as well. */
export class ListLoader {
  readonly #options: ListLoaderOptions;

  /** Asks nothing yet. */
  constructor(options: ListLoaderOptions) {
    this.#options = options;
  }

  /** Tells whether a list is the one for this client; a module shows everybody the same. */
  isKnown({ source, lists, ages }: Entry, list: ListName): boolean {
    return lists.has(list) && (!source.tells || ages.get(list) === this.#options.age());
  }

  /**
   * Loads a list. Returns whether clients see another one than before, where an unknown list counts
   * as empty. Throws why it failed.
   */
  async load(entry: Entry, list: ListName, tries = LOADS_MAX): Promise<boolean> {
    const { age: ageNow } = this.#options;
    const { source, lists, failures, ages } = entry;
    if (source.tells && !lists.has(list)) await this.#takeEarlier(entry, list);
    const before = lists.get(list);
    const age = ageNow();
    try {
      const all = await source.list(list);
      const { items, said } = partsOf(entry, list, all);
      // What was asked for one client is not shown to another, while that can be had.
      if (age !== ageNow() && tries > 1) return await this.load(entry, list, tries - 1);
      ages.set(list, age);
      failures.delete(list);
      // A slow answer is not put in the place of a newer one.
      if (before === items || lists.get(list) !== before) return false;
      const isSameText = said?.description === entry.said?.description;
      if (before === undefined || !isSameText || !await isSame(before, items)) {
        const isTaken = await this.#take(entry, { list, items, said, before });
        return isTaken && (before !== undefined || items.length > 0);
      }
      if (lists.get(list) === before) lists.set(list, items);
      return false;
    } catch (error) {
      const failure = asPmlError(error);
      failures.set(list, failure);
      throw failure;
    }
  }

  /** Takes the list for a client with other capabilities, until the one for this client is there. */
  async #takeEarlier(entry: Entry, list: ListName): Promise<void> {
    const all = await entry.source.earlierList?.(list).catch(() => undefined);
    if (all === undefined || entry.lists.has(list)) return;
    await this.#take(entry, { list, ...partsOf(entry, list, all), before: undefined });
  }

  /** Takes another list, unless a newer one, or another server, came while its tools were read. */
  async #take(
    entry: Entry,
    { list, items, said, before }: Loaded,
  ): Promise<boolean> {
    const { catalog, isThere } = this.#options;
    const { source, lists } = entry;
    // What loads tools looked at them.
    const tools = items as readonly ToolDefinition[];
    const { unusableTools } = await import("./_safe_schema.ts");
    const unusable = list === "tools" ? await unusableTools(tools) : undefined;
    const unapproved = unusable && await this.#unapproved(entry, tools, said);
    const { settings } = source;
    const shown = tools.map((tool) => unapproved?.get(tool) ?? tool);
    const set = unusable && settings &&
      (await import("./_tool_settings.ts")).applied(shown, settings);
    if (lists.get(list) !== before || !isThere(entry)) return false;
    lists.set(list, items);
    if (unusable === undefined || unapproved === undefined) return true;
    const { tools: kept = shown, changes = [], unmet = [] } = set ?? {};
    const owns = new Map(shown.map((tool, at) => [tool, tools[at] ?? tool]));
    const ownOf = (tool: ToolDefinition) => owns.get(tool) ?? tool;
    const all = new Map<ToolDefinition, ToolDefinition | string>([
      ...unapproved,
      ...[...changes].map(([tool, change]) => [ownOf(tool), change] as const),
      ...unusable,
    ]);
    entry.rejected = catalog.set(source, kept.map(ownOf), { changes: all, unapproved });
    entry.left = tools.length - kept.length;
    entry.unmet = unmet;
    entry.unapproved = [...unapproved.keys()].map(({ name }) => name);
    entry.said = said;
    entry.instructions = (said && unapproved.get(said) || said)?.description;
    return true;
  }

  /** Compares the tools of a server with the approved ones again. True if clients see others. */
  async review(entry: Entry): Promise<boolean> {
    const { source, lists, said } = entry;
    const items = lists.get("tools");
    if (items === undefined || source.blocked() !== undefined) return false;
    const tools = items as readonly ToolDefinition[]; // what loads tools looked at them
    const changed = await this.#unapproved(entry, tools, said);
    const unapproved = [...changed.keys()].map(({ name }) => name);
    if (`${unapproved}` === `${entry.unapproved}`) return false;
    return await this.#take(entry, { list: "tools", items, said, before: items });
  }

  /** Returns what to show for tools and instructions that changed without an approval. */
  async #unapproved(
    { source }: Entry,
    tools: readonly ToolDefinition[],
    said: ToolDefinition | undefined,
  ) {
    const all = said === undefined ? tools : [...tools, said];
    return await source.approvedDefinitions?.(all) ?? new Map<ToolDefinition, ToolDefinition>();
  }
}

/** Returns the items of a list, and the instructions that a list of tools contains. */
function partsOf(
  entry: Entry,
  list: ListName,
  all: readonly ListItem[],
): Pick<Loaded, "items" | "said"> {
  if (list !== "tools") return { items: all, said: entry.said };
  // What loads tools looked at them.
  return { items: externalTools(all), said: instructionsIn(all as readonly ToolDefinition[]) };
}

/** Compares lists, which may be long, a piece at a time. */
async function isSame(one: readonly ListItem[], other: readonly ListItem[]): Promise<boolean> {
  if (one.length !== other.length) return false;
  const { Turns } = await import("./_safe_schema.ts");
  const turns = new Turns();
  for (const [at, item] of one.entries()) {
    if (JSON.stringify(item) !== JSON.stringify(other[at])) return false;
    await turns.next();
  }
  return true;
}

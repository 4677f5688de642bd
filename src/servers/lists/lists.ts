/**
 * Loads, caches and invalidates the lists of all servers. There are two more caches:
 * `ConnectionLists` has the lists as servers sent them, and `RenderedLists` has the lists as
 * clients get them.
 *
 * @module
 */

import type { OtherMembers } from "../../protocol/call.ts";
import { asPmlError } from "../../core/errors.ts";
import { type JsonObject, sortedJsonText } from "../../core/json.ts";
import { settlesWithin } from "../../io/waiting.ts";
import {
  externalTools,
  instructionsIn,
  LIST_NAMES,
  type ListItem,
  type ListName,
  unreadableError,
} from "../../protocol/lists.ts";
import type { Server } from "../server.ts";
import { skillDefinition, skillIn } from "../../protocol/skills.ts";
import type { ToolDefinition } from "../../protocol/tool.ts";
import type { Catalog } from "../../search/catalog.ts";
import { catalogServerOf, type ListedServer, newEntry, wasRequested } from "./_entry.ts";
import { ListChanges } from "./_list_changes.ts";

/** The maximum number of servers with a failed list that a message names. */
const MISSING_MAX = 3;
/** How long a request waits for a server whose last start took too long, in milliseconds. */
const LATE_START_MS = 1_000;
/** The maximum number of requests for one list while clients or the configuration change. */
const LOADS_MAX = 3;

/** A list of one server. */
export interface ServerItems {
  readonly server: string;
  readonly items: readonly ListItem[];
}

/** The services of PML that lists use. */
export interface ListsHost {
  /** The catalog into which the tools are put. */
  readonly catalog: Catalog;
  /** Returns how long a request waits for servers without a known list, in milliseconds. */
  waitMs(): number;
  /**
   * Is called when the content of a list has changed, or when a server reported a change with
   * members that PML does not know.
   */
  onChange(list: ListName, members?: OtherMembers): void;
}

/** The options of `Lists.prepare()`. */
export interface PrepareOptions {
  /** The only server whose list is requested; by default, the lists of all servers are. */
  readonly only?: string | undefined;
  /** Waits until each server answers or fails, for callers that get no notification. */
  readonly waitsForAll?: boolean;
  /** Waits for cached lists only. `onChange` reports other lists when they arrive. */
  readonly onlyCached?: boolean;
}

/** A list that a server sent. */
interface LoadedList {
  readonly list: ListName;
  readonly items: readonly ListItem[];
  /** The instructions of the server, with a list of tools. */
  readonly instructions: ToolDefinition | undefined;
  /** The number of the request that returned the list; undefined if nothing was requested. */
  readonly request?: number;
}

/** A list that is being loaded. */
interface PendingLoad {
  readonly list: ListName;
  readonly entry: ListedServer;
  /** When the request was sent, by `performance.now()`. */
  readonly since: number;
}

/** A list to store, and the list that it replaces. */
interface Replacement extends LoadedList {
  readonly before: readonly ListItem[] | undefined;
}

/** The lists of all servers. Fills the catalog with their tools. */
export class Lists implements Disposable {
  readonly #host: ListsHost;
  readonly #changes: ListChanges;
  /** The lists that are being loaded. */
  readonly #loading = new Map<Promise<unknown>, PendingLoad>();
  /** The entries in the order of their names. */
  #entries = new Map<string, ListedServer>();
  /** The number of the current set of client capabilities. A new set gets the next number. */
  #capabilitySet = 0;
  /** Counts the requests for lists. */
  #requestCount = 0;
  #capabilities: JsonObject = {};

  /** Creates empty lists, without servers. */
  constructor(host: ListsHost) {
    this.#host = host;
    this.#changes = new ListChanges(
      (server, list) => this.#reload(server, list),
      (list, members) => host.onChange(list, members),
    );
  }

  /** The cached facts about each server, by name. */
  get entries(): ReadonlyMap<string, ListedServer> {
    return this.#entries;
  }

  /** Replaces the servers. If a server has the same definition as before, its lists stay. */
  replace(sources: readonly Server[]): void {
    const before = this.#entries;
    const inOrder = sources.toSorted((one, other) => one.name < other.name ? -1 : 1);
    this.#entries = new Map(
      inOrder.map((source) => {
        const server = before.get(source.name);
        const isSame = source.definition !== undefined &&
          server?.source.definition === source.definition;
        return [source.name, isSame && server !== undefined ? server : newEntry(source)];
      }),
    );
    for (const [name, entry] of before) {
      if (this.#entries.get(name) !== entry) this.#host.catalog.remove(name);
    }
  }

  /** The capabilities that a client declared last. */
  get capabilities(): JsonObject {
    return this.#capabilities;
  }

  /** Sets the capabilities of the current client, for which servers may have other lists. */
  setCapabilities(capabilities: JsonObject): void {
    if (sortedJsonText(capabilities) === sortedJsonText(this.#capabilities)) return;
    this.#capabilities = capabilities;
    this.#capabilitySet++;
    for (const { waits } of this.#entries.values()) waits.clear();
  }

  /** Forgets late starts, of all servers by default: the next request waits the full time. */
  forgetLateStarts(only?: string): void {
    for (const { source } of this.#entries.values()) {
      if (only === undefined || source.name === only) source.forgetLateStart?.();
    }
  }

  /**
   * Invalidates lists of a server, by default all: its connections drop their cached lists, and
   * calls wait for its new tools. Clients get the earlier lists until the server has answered.
   */
  expire(server: string, lists: readonly ListName[] = LIST_NAMES): void {
    this.#entries.get(server)?.source.forget(lists);
    for (const list of lists) this.noteChange(server, list);
  }

  /** Notes that a server reported a changed list, which its connections have dropped already. */
  noteChange(server: string, list: ListName, members?: OtherMembers): void {
    const entry = this.#entries.get(server);
    if (entry !== undefined && list === "tools") entry.isOutdated = true;
    this.#changes.note(server, list, members);
  }

  /** Invalidates all lists of servers (by default all) that can report changes. */
  forget(only?: string): void {
    for (const { source, capabilitySets } of this.#entries.values()) {
      const isWanted = only === undefined || source.name === only;
      if (!isWanted || !source.reportsChanges || source.whyBlocked() !== undefined) continue;
      source.forget();
      capabilitySets.clear();
    }
  }

  /**
   * Requests a list from all servers whose list is unknown, at the same time. Without
   * `waitsForAll`, waits for each server only a limited time.
   */
  async prepare(
    list: ListName = "tools",
    options: PrepareOptions = {},
  ): Promise<void> {
    if (list === "tools" || list === "skills") await this.reviewAll();
    for (let tries = 0; tries < LOADS_MAX; tries++) {
      const entries = this.#entries;
      await this.#prepareUnknown(list, options);
      // If the configuration was read again meanwhile, there are other servers.
      if (this.#entries === entries) return;
    }
  }

  /** Loads the lists of tools that are available without starting a server. */
  async prepareCached(): Promise<void> {
    await Promise.all([...this.#entries.values()].map(async (entry) => {
      const { source } = entry;
      if (source.whyBlocked() !== undefined || this.#isKnown(entry, "tools")) return;
      // The entry stores a failure, and `states()` returns it.
      if (await hasList(source, "tools")) await this.#load(entry, "tools").catch(() => false);
    }));
  }

  async #prepareUnknown(
    list: ListName,
    { only, waitsForAll, onlyCached }: PrepareOptions,
  ): Promise<void> {
    const unknown = [...this.#entries.values()].filter((entry) =>
      !this.#isKnown(entry, list) && (only === undefined || entry.source.name === only) &&
      entry.source.whyBlocked() === undefined
    );
    if (unknown.length === 0) return;
    let hasReturned = false;
    await Promise.all(unknown.map(async (entry) => {
      const wasAsked = wasRequested(entry, list);
      // The entry stores a failure, and `states()` returns it.
      const load = this.#load(entry, list).then((isNew) => {
        // The caller, or an earlier one, may have got a list without these items.
        if (isNew && (hasReturned || wasAsked)) this.#host.onChange(list);
      }, () => {});
      if (onlyCached && !await hasList(entry.source, list)) {
        await this.#storeEarlier(entry, list);
        return;
      }
      const lateStart = await entry.source.lateStartError?.().catch(() => undefined);
      const isLimited = lateStart !== undefined || waitsForAll !== true;
      const limit = lateStart === undefined ? this.#host.waitMs() : LATE_START_MS;
      const isInTime = isLimited
        ? entry.waits.get(list) ?? settlesWithin(load, limit)
        : load.then(() => true);
      // Other limited requests for the list share this limit.
      if (isLimited) entry.waits.set(list, isInTime);
      // The limit ends with the request: the next request has its own.
      load.finally(() => entry.waits.delete(list));
      // Until the server answers, its state shows the error of the late start.
      if (!await isInTime && lateStart !== undefined && !wasRequested(entry, list)) {
        entry.failures.set(list, lateStart);
      }
    }));
    hasReturned = true;
  }

  /** Returns whether no request for this list is open. */
  isComplete(list: ListName): boolean {
    return [...this.#loading.values()].every((load) => load.list !== list);
  }

  /** Returns the names of the servers whose tools are unknown, and whose list is being loaded. */
  starting(): readonly string[] {
    const names = [...this.#loading.values()].flatMap(({ list, entry: { source, lists } }) =>
      list === "tools" && !lists.has(list) ? [source.name] : []
    );
    return [...new Set(names)].sort();
  }

  /**
   * Resolves when no list of a server that reports changes is being loaded: such lists are cached
   * in files. Stops waiting for a list `ms` milliseconds after its request was sent.
   */
  async allLoaded(ms: number): Promise<void> {
    const loads = () =>
      [...this.#loading].flatMap(([load, { entry, since }]) => {
        const remaining = since + ms - performance.now();
        return entry.source.reportsChanges && remaining > 0 ? [{ load, remaining }] : [];
      });
    for (let all = loads(); all.length > 0; all = loads()) {
      const longest = Math.max(...all.map(({ remaining }) => remaining));
      await settlesWithin(Promise.allSettled(all.map(({ load }) => load)), longest);
    }
  }

  /** Returns the cached items of a list for clients, by server. Leaves out blocked servers. */
  itemsOf(list: ListName): readonly ServerItems[] {
    return [...this.#entries.values()].flatMap(({ source, lists, skills }) => {
      const items = list === "skills" && lists.has(list) ? skills : lists.get(list);
      return items && source.whyBlocked() === undefined ? [{ server: source.name, items }] : [];
    });
  }

  /** Returns the errors of servers whose list failed, as the end of a message; "" without any. */
  failureText(list: ListName): string {
    return [...this.#entries.values()].flatMap(({ failures }) => failures.get(list) ?? [])
      .slice(0, MISSING_MAX).map(({ message }) => `; ${message}`).join("");
  }

  /** Loads the tools of a server if they are unknown. Throws the error of the server. */
  async load(server: string): Promise<void> {
    for (let tries = 0; tries < LOADS_MAX; tries++) {
      const entry = this.#entries.get(server);
      const isKnown = entry?.source.reportsChanges === true && this.#isKnown(entry, "tools") &&
        entry.source.whyBlocked() === undefined;
      if (entry !== undefined && !isKnown) await this.#loadApproved(entry);
      // If the configuration was read again meanwhile, another entry has replaced this one.
      if (this.#entries.get(server) === entry) return;
    }
  }

  /** Returns whether the catalog has the current tools of a server: nothing need be loaded. */
  isLoaded(server: string): boolean {
    const entry = this.#entries.get(server);
    if (entry === undefined || entry.isOutdated || entry.reloading !== undefined) return false;
    const { source } = entry;
    return (source.reportsChanges || source.origin.isShipped) && this.#isKnown(entry, "tools") &&
      source.whyBlocked() === undefined;
  }

  /** If a server has reported a change of its tools, loads them again. */
  async renew(server: string): Promise<void> {
    const entry = this.#entries.get(server);
    // PML requests no list from a server that may not run.
    if (entry === undefined || entry.source.whyBlocked() !== undefined) return;
    if (entry.isOutdated) {
      entry.isOutdated = false;
      const renewing = this.#loadApproved(entry).catch((error) => {
        entry.isOutdated = true;
        throw error;
      }).finally(() => {
        if (entry.reloading === renewing) entry.reloading = undefined;
      });
      entry.reloading = renewing;
    }
    // A call that arrives during the reload must wait, too, and not use the earlier definition.
    await entry.reloading;
  }

  /** Compares tools and skills with the approved definitions again, such as after an approval. */
  async review(server: string): Promise<void> {
    const entry = this.#entries.get(server);
    if (entry !== undefined && await this.#review(entry)) this.#host.onChange("tools");
    if (entry !== undefined && await this.#reviewSkills(entry)) this.#host.onChange("skills");
  }

  /** Reviews the servers with changed tools or skills, which another process may have approved. */
  async reviewAll(): Promise<void> {
    const entries = [...this.#entries.values()];
    const changed = entries.filter(({ unapproved }) => unapproved.length > 0)
      .map((entry) => this.#review(entry));
    const skills = entries.filter(({ changedSkills }) => changedSkills.length > 0)
      .map((entry) => this.#reviewSkills(entry));
    // After a failure, clients get the same tools and skills as before.
    await Promise.allSettled([...changed, ...skills]);
  }

  /** Stops loading changed lists. */
  [Symbol.dispose](): void {
    this.#changes[Symbol.dispose]();
  }

  /** Loads the tools of a server. Throws if it may not run: reading its lists runs its code. */
  async #loadApproved(entry: ListedServer): Promise<void> {
    const why = entry.source.whyBlocked();
    if (why === undefined) {
      const wasAsked = wasRequested(entry, "tools");
      if (await this.#load(entry, "tools") && wasAsked) this.#host.onChange("tools");
      return;
    }
    throw unreadableError("tools", { server: entry.source.name, why });
  }

  /** Loads a list again. Returns whether clients see a different list now. */
  async #reload(server: string, list: ListName): Promise<boolean> {
    const entry = this.#entries.get(server);
    if (entry === undefined || entry.source.whyBlocked() !== undefined) return false;
    // The entry stores a failure.
    return await this.#load(entry, list).catch(() => false);
  }

  async #load(entry: ListedServer, list: ListName): Promise<boolean> {
    const load = this.#read(entry, list);
    this.#loading.set(load, { list, entry, since: performance.now() });
    try {
      return await load;
    } finally {
      this.#loading.delete(load);
    }
  }

  /**
   * Returns whether the list for the current client is known. A server that does not report changes
   * (a module) has one list for all clients.
   */
  #isKnown({ source, lists, capabilitySets }: ListedServer, list: ListName): boolean {
    return lists.has(list) &&
      (!source.reportsChanges || capabilitySets.get(list) === this.#capabilitySet);
  }

  /**
   * Loads a list. Returns whether clients see a different list than before, where an unknown list
   * counts as empty. Throws if the request fails.
   */
  async #read(entry: ListedServer, list: ListName, tries = LOADS_MAX): Promise<boolean> {
    const { source, lists, failures, capabilitySets } = entry;
    if (source.reportsChanges && !lists.has(list)) await this.#storeEarlier(entry, list);
    const capabilitySet = this.#capabilitySet;
    const request = ++this.#requestCount;
    try {
      const all = await source.list(list);
      const loaded = { list, request, ...partsOf(entry, list, all) };
      // Another client became the current one: requests the list for it. After the last try, the
      // list for the earlier client is used.
      if (capabilitySet !== this.#capabilitySet && tries > 1) {
        return await this.#read(entry, list, tries - 1);
      }
      capabilitySets.set(list, capabilitySet);
      failures.delete(list);
      return await this.#takeAnswer(entry, loaded);
    } catch (error) {
      const failure = asPmlError(error);
      failures.set(list, failure);
      throw failure;
    }
  }

  /**
   * Stores the answer to a request, unless the answer to a later request was stored. Returns
   * whether clients see a different list than before.
   */
  async #takeAnswer(
    entry: ListedServer,
    loaded: LoadedList & { readonly request: number },
  ): Promise<boolean> {
    const { source, lists, requests } = entry;
    const { list, items, instructions, request } = loaded;
    while ((requests.get(list) ?? 0) < request && this.#entries.get(source.name) === entry) {
      const before = lists.get(list);
      if (before === items) {
        requests.set(list, request);
        return false;
      }
      const isSameText = instructions?.description === entry.sentInstructions?.description;
      if (before === undefined || !isSameText || !await isSame(before, items)) {
        const isStored = await this.#store(entry, { ...loaded, before });
        if (isStored) return before !== undefined || items.length > 0;
      } else if (lists.get(list) === before) {
        lists.set(list, items);
        requests.set(list, request);
        return false;
      }
      // Another answer was stored while these items were compared or read.
    }
    return false;
  }

  /** Stores the list for other client capabilities until the list for this client arrives. */
  async #storeEarlier(entry: ListedServer, list: ListName): Promise<void> {
    const all = await entry.source.readEarlierList?.(list).catch(() => undefined);
    if (all === undefined || entry.lists.has(list)) return;
    await this.#store(entry, { list, ...partsOf(entry, list, all), before: undefined });
  }

  /** Stores a list. Returns false if the list or the server was replaced meanwhile. */
  async #store(
    entry: ListedServer,
    { list, items, instructions, request, before }: Replacement,
  ): Promise<boolean> {
    const { source, lists } = entry;
    if (list === "skills") return await this.#storeSkills(entry, { items, request, before });
    const tools = items as readonly ToolDefinition[]; // each server checks the tools that it lists
    const { unusableTools } = await import("./_safe_schema.ts");
    const unusable = list === "tools" ? await unusableTools(tools) : undefined;
    const unapproved = unusable && await unapprovedOf(entry, tools, instructions);
    const { settings } = source;
    const visibleTools = tools.map((tool) => unapproved?.get(tool) ?? tool);
    const applied = unusable && settings &&
      (await import("./_tool_settings.ts")).applySettings(visibleTools, settings);
    const isThere = this.#entries.get(source.name) === entry;
    if (lists.get(list) !== before || !isThere) return false;
    lists.set(list, items);
    if (request !== undefined) entry.requests.set(list, request);
    if (unusable === undefined || unapproved === undefined) return true;
    const { tools: ownTools = visibleTools, changes = [], unusedNames = [] } = applied ?? {};
    const sentTools = new Map(visibleTools.map((tool, index) => [tool, tools[index] ?? tool]));
    const sentToolOf = (tool: ToolDefinition) => sentTools.get(tool) ?? tool;
    const all = new Map<ToolDefinition, ToolDefinition | string>([
      ...unapproved,
      ...[...changes].map(([tool, change]) => [sentToolOf(tool), change] as const),
      ...unusable,
    ]);
    const { catalog } = this.#host;
    entry.rejected = catalog.set(catalogServerOf(source), ownTools.map(sentToolOf), {
      changes: all,
      unapproved,
    });
    entry.omittedCount = tools.length - ownTools.length;
    entry.unusedNames = unusedNames;
    entry.unapproved = [...unapproved.keys()].map(({ name }) => name);
    entry.sentInstructions = instructions;
    entry.instructions = (instructions && unapproved.get(instructions) || instructions)
      ?.description;
    return true;
  }

  /** Stores skills. For a changed skill, clients see the approved entry. */
  async #storeSkills(
    entry: ListedServer,
    { items, request, before }: Pick<Replacement, "items" | "request" | "before">,
  ): Promise<boolean> {
    const { source, lists } = entry;
    const { visibleSkills, changed } = await skillsOf(source, items);
    const isThere = this.#entries.get(source.name) === entry;
    if (lists.get("skills") !== before || !isThere) return false;
    lists.set("skills", items);
    if (request !== undefined) entry.requests.set("skills", request);
    entry.skills = visibleSkills;
    entry.changedSkills = changed;
    return true;
  }

  /** Compares the skills of a server with the approved ones. Returns whether the result changed. */
  async #reviewSkills(entry: ListedServer): Promise<boolean> {
    const { source, lists, changedSkills } = entry;
    const items = lists.get("skills");
    if (items === undefined || source.whyBlocked() !== undefined) return false;
    const { changed } = await skillsOf(source, items);
    if (`${changed}` === `${changedSkills}`) return false;
    return await this.#storeSkills(entry, { items, before: items });
  }

  /** Compares the tools of a server with the approved ones. Returns whether the result changed. */
  async #review(entry: ListedServer): Promise<boolean> {
    const { source, lists, sentInstructions } = entry;
    const items = lists.get("tools");
    if (items === undefined || source.whyBlocked() !== undefined) return false;
    const tools = items as readonly ToolDefinition[]; // each server checks the tools that it lists
    const changed = await unapprovedOf(entry, tools, sentInstructions);
    const unapproved = [...changed.keys()].map(({ name }) => name);
    if (`${unapproved}` === `${entry.unapproved}`) return false;
    return await this.#store(entry, {
      list: "tools",
      items,
      instructions: sentInstructions,
      before: items,
    });
  }
}

/** Returns whether a list is available without starting a server; true if that is unknown. */
async function hasList(source: Server, list: ListName): Promise<boolean> {
  return await source.hasList?.(list).catch(() => true) ?? true;
}

/** Maps tools and instructions that changed without an approval to their approved definitions. */
async function unapprovedOf(
  { source }: ListedServer,
  tools: readonly ToolDefinition[],
  instructions: ToolDefinition | undefined,
): Promise<ReadonlyMap<ToolDefinition, ToolDefinition>> {
  const all = instructions === undefined ? tools : [...tools, instructions];
  return await source.approvedDefinitions?.(all) ?? new Map<ToolDefinition, ToolDefinition>();
}

/** Returns the skills that clients get, and the names of the pins of changed skills. */
async function skillsOf(
  source: Server,
  skills: readonly ListItem[],
): Promise<{ readonly visibleSkills: readonly ListItem[]; readonly changed: readonly string[] }> {
  const definitions = skills.map(skillDefinition);
  const approved = await source.approvedDefinitions?.(definitions) ??
    new Map<ToolDefinition, ToolDefinition>();
  const visibleSkill = (one: ToolDefinition) => {
    const other = approved.get(one);
    // guard: skill-list
    if (other !== undefined) return skillIn(other);
    return skillIn(one);
  };
  const items = definitions.map(visibleSkill).filter((one) => one !== undefined);
  return { visibleSkills: items, changed: [...approved.keys()].map(({ name }) => name) };
}

/** Returns the items of a list, and the instructions that a list of tools contains. */
function partsOf(
  entry: ListedServer,
  list: ListName,
  all: readonly ListItem[],
): Pick<LoadedList, "items" | "instructions"> {
  if (list !== "tools") return { items: all, instructions: entry.sentInstructions };
  return {
    items: externalTools(all),
    // Each server checks the tools that it lists.
    instructions: instructionsIn(all as readonly ToolDefinition[]),
  };
}

/** Returns whether two lists are equal. Yields to other work while it compares long lists. */
async function isSame(one: readonly ListItem[], other: readonly ListItem[]): Promise<boolean> {
  if (one.length !== other.length) return false;
  const { CheckPauses } = await import("./_safe_schema.ts");
  const turns = new CheckPauses();
  for (const [index, item] of one.entries()) {
    if (JSON.stringify(item) !== JSON.stringify(other[index])) return false;
    await turns.next();
  }
  return true;
}

/**
 * Loads, caches and invalidates the lists of all servers that clients are shown. The connections of a
 * server cache the lists as it sent them, and `RenderedLists` the lists as clients get them.
 *
 * @module
 */

import type { OtherMembers } from "../../protocol/call.ts";
import { asPmlError } from "../../core/errors.ts";
import { type JsonObject, sorted } from "../../core/json.ts";
import { soon } from "../../io/waiting.ts";
import {
  externalTools,
  instructionsIn,
  LIST_NAMES,
  type ListItem,
  type ListName,
  unreadable,
} from "../../protocol/lists.ts";
import type { Server } from "../server.ts";
import { skillDefinition, skillIn } from "../../protocol/skills.ts";
import type { ToolDefinition } from "../../protocol/tool.ts";
import type { Catalog } from "../../search/catalog.ts";
import { catalogServerOf, isAsked, type ListedServer, newEntry } from "./_entry.ts";
import { ListChanges } from "./_list_changes.ts";

/** How many servers a message names whose list is missing. */
const MISSING_MAX = 3;
/** How often a list is requested while clients change, or the configuration is read again. */
const LOADS_MAX = 3;

/** A list of one server. */
export interface Listed {
  readonly server: string;
  readonly items: readonly ListItem[];
}

/** The PML that lists belong to. */
export interface ListsHost {
  /** Gets the tools. */
  readonly catalog: Catalog;
  /** Returns how long a list waits for servers that were never asked, in milliseconds. */
  waitMs(): number;
  /**
   * Is called when a list has really changed, or when a server reported a change with members that
   * PML does not know.
   */
  onChange(list: ListName, members?: OtherMembers): void;
}

/** The options of `Lists.prepare()`. */
export interface PrepareOptions {
  /** The only server to ask. */
  readonly only?: string | undefined;
  /** Waits for each server until it answers or fails: for callers that get no notification. */
  readonly isWhole?: boolean;
  /** Waits for cached lists only. `onChange` reports the others. */
  readonly atOnce?: boolean;
}

/** A list as it was loaded. */
interface Loaded {
  readonly list: ListName;
  readonly items: readonly ListItem[];
  /** The instructions of the server, with a list of tools. */
  readonly instructions: ToolDefinition | undefined;
  /** The number of the request that it answers; undefined if nothing was requested. */
  readonly request?: number;
}

/** A list that is being loaded. */
interface PendingLoad {
  readonly list: ListName;
  readonly entry: ListedServer;
  /** When its server was asked. */
  readonly since: number;
}

/** A list to take, and the one that it replaces. */
interface Replacement extends Loaded {
  readonly before: readonly ListItem[] | undefined;
}

/** The lists of all servers. Fills the catalog with their tools. */
export class Lists implements Disposable {
  readonly #host: ListsHost;
  readonly #changes: ListChanges;
  /** The lists that are being loaded. */
  readonly #loading = new Map<Promise<unknown>, PendingLoad>();
  /** In the order of their names. */
  #entries = new Map<string, ListedServer>();
  /** Counts the sets of capabilities that clients declared. A list is as old as its set. */
  #age = 0;
  /** Counts the requests for lists. */
  #requests = 0;
  #able: JsonObject = {};

  /** Creates empty lists. There is no server yet. */
  constructor(host: ListsHost) {
    this.#host = host;
    this.#changes = new ListChanges(
      (server, list) => this.#reload(server, list),
      (list, members) => host.onChange(list, members),
    );
  }

  /** The state of each server, by name. */
  get entries(): ReadonlyMap<string, ListedServer> {
    return this.#entries;
  }

  /** Takes the present servers. The lists of a server with the same definition stay. */
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
  get able(): JsonObject {
    return this.#able;
  }

  /** Takes the capabilities of a client: servers may show it other lists. */
  serve(able: JsonObject): void {
    if (sorted(able) === sorted(this.#able)) return;
    this.#able = able;
    this.#age++;
    for (const { waits } of this.#entries.values()) waits.clear();
  }

  /**
   * Invalidates lists of a server, by default all: its connections drop their cached lists, calls
   * wait for its present tools, and clients get the earlier lists until it has answered.
   */
  expire(server: string, lists: readonly ListName[] = LIST_NAMES): void {
    this.#entries.get(server)?.source.forget(lists);
    for (const list of lists) this.changed(server, list);
  }

  /** Does the same for a list that a server reported as changed: its connections have dropped it. */
  changed(server: string, list: ListName, members?: OtherMembers): void {
    const entry = this.#entries.get(server);
    if (entry !== undefined && list === "tools") entry.isOutdated = true;
    this.#changes.note(server, list, members);
  }

  /** Drops all lists of servers, or of one, so that the next use requests them. */
  forget(only?: string): void {
    for (const { source, ages } of this.#entries.values()) {
      const isWanted = only === undefined || source.name === only;
      if (!isWanted || !source.tells || source.blocked() !== undefined) continue;
      source.forget();
      ages.clear();
    }
  }

  /**
   * Requests a list of all servers whose list is unknown, or of one, side by side. One that hangs
   * delays no other.
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

  /** Takes the lists of tools that are there without starting a server. */
  async prepareCached(): Promise<void> {
    await Promise.all([...this.#entries.values()].map(async (entry) => {
      const { source } = entry;
      if (source.blocked() !== undefined || this.#isKnown(entry, "tools")) return;
      // A failure is kept in the entry and shown by `states()`.
      if (await hasList(source, "tools")) await this.#load(entry, "tools").catch(() => false);
    }));
  }

  async #prepareUnknown(
    list: ListName,
    { only, isWhole, atOnce }: PrepareOptions,
  ): Promise<void> {
    const unknown = [...this.#entries.values()].filter((entry) =>
      !this.#isKnown(entry, list) && (only === undefined || entry.source.name === only) &&
      entry.source.blocked() === undefined
    );
    if (unknown.length === 0) return;
    let isOver = false;
    await Promise.all(unknown.map(async (entry) => {
      const wasAsked = isAsked(entry, list);
      // A failure is kept in the entry and shown by `states()`.
      const load = this.#load(entry, list).then((isNew) => {
        if (isNew && (isOver || wasAsked)) this.#host.onChange(list);
      }, () => {});
      if (atOnce && !await hasList(entry.source, list)) return;
      const wait = isWhole ? load : entry.waits.get(list) ?? this.#inTime(load);
      // Other requests for the list keep their own limit.
      if (!isWhole) entry.waits.set(list, wait);
      // A server that hangs delays one call only; a failed one may work the next time.
      load.finally(() => entry.waits.delete(list));
      await wait;
    }));
    isOver = true;
  }

  async #inTime(load: Promise<unknown>): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, this.#host.waitMs());
    await Promise.race([load, promise]);
    clearTimeout(timer);
  }

  /** Returns whether no server is being asked for this list. */
  isComplete(list: ListName): boolean {
    return [...this.#loading.values()].every((one) => one.list !== list);
  }

  /** Returns the names of the servers that are still installed or started: no tools are known. */
  starting(): readonly string[] {
    const names = [...this.#loading.values()].flatMap(({ list, entry: { source, lists } }) =>
      list === "tools" && !lists.has(list) ? [source.name] : []
    );
    return [...new Set(names)].sort();
  }

  /**
   * Resolves when no server is being asked for a list that is cached in a file. A server that hangs is
   * left out `ms` milliseconds after it was asked.
   */
  async allLoaded(ms: number): Promise<void> {
    const loads = () =>
      [...this.#loading].flatMap(([load, { entry, since }]) => {
        const remaining = since + ms - performance.now();
        return entry.source.tells && remaining > 0 ? [{ load, remaining }] : [];
      });
    for (let all = loads(); all.length > 0; all = loads()) {
      const longest = Math.max(...all.map(({ remaining }) => remaining));
      await soon(Promise.allSettled(all.map(({ load }) => load)), longest);
    }
  }

  /**
   * Returns the cached items of a list as clients are shown them, by server. Blocked servers are
   * left out.
   */
  itemsOf(list: ListName): readonly Listed[] {
    return [...this.#entries.values()].flatMap(({ source, lists, skills }) => {
      const items = list === "skills" && lists.has(list) ? skills : lists.get(list);
      return items && source.blocked() === undefined ? [{ server: source.name, items }] : [];
    });
  }

  /** Returns the names of servers whose list failed, as the end of a message; "" if none did. */
  missing(list: ListName): string {
    return [...this.#entries.values()].flatMap(({ failures }) => failures.get(list) ?? [])
      .slice(0, MISSING_MAX).map(({ message }) => `; ${message}`).join("");
  }

  /** Loads the tools of a server if they are unknown. Throws the error of the server. */
  async load(server: string): Promise<void> {
    for (let tries = 0; tries < LOADS_MAX; tries++) {
      const entry = this.#entries.get(server);
      const isKnown = entry?.source.tells === true && this.#isKnown(entry, "tools") &&
        entry.source.blocked() === undefined;
      if (entry !== undefined && !isKnown) await this.#loadApproved(entry);
      // If the configuration was read again meanwhile, the catalog has no tools of that entry.
      if (this.#entries.get(server) === entry) return;
    }
  }

  /** Returns whether the tools of a server are known, and it reported no change of them. */
  isLoaded(server: string): boolean {
    const entry = this.#entries.get(server);
    if (entry === undefined || entry.isOutdated || entry.renewing !== undefined) return false;
    const { source } = entry;
    return (source.tells || source.origin.isShipped) && this.#isKnown(entry, "tools") &&
      source.blocked() === undefined;
  }

  /** Loads the tools of a server again that reported a change of them. */
  async renew(server: string): Promise<void> {
    const entry = this.#entries.get(server);
    // The list of a server that may not run is not requested.
    if (entry === undefined || entry.source.blocked() !== undefined) return;
    if (entry.isOutdated) {
      entry.isOutdated = false;
      const renewing = this.#loadApproved(entry).catch((error) => {
        entry.isOutdated = true;
        throw error;
      }).finally(() => {
        if (entry.renewing === renewing) entry.renewing = undefined;
      });
      entry.renewing = renewing;
    }
    // A call that arrives meanwhile must not continue with the earlier definition.
    await entry.renewing;
  }

  /** Compares the tools of a server with the approved ones again: an approval came, or a change. */
  async review(server: string): Promise<void> {
    const entry = this.#entries.get(server);
    if (entry !== undefined && await this.#review(entry)) this.#host.onChange("tools");
    if (entry !== undefined && await this.#reviewSkills(entry)) this.#host.onChange("skills");
  }

  /** Does so for the servers with changed tools: another process may have approved them. */
  async reviewAll(): Promise<void> {
    const entries = [...this.#entries.values()];
    const changed = entries.filter(({ unapproved }) => unapproved.length > 0)
      .map((entry) => this.#review(entry));
    const skills = entries.filter(({ changedSkills }) => changedSkills.length > 0)
      .map((entry) => this.#reviewSkills(entry));
    // A failure leaves the tools and skills as they are shown.
    await Promise.allSettled([...changed, ...skills]);
  }

  /** Stops loading changed lists. */
  [Symbol.dispose](): void {
    this.#changes[Symbol.dispose]();
  }

  // Reading the lists of a server runs its code.
  async #loadApproved(entry: ListedServer): Promise<void> {
    const why = entry.source.blocked();
    if (why === undefined) {
      const wasAsked = isAsked(entry, "tools");
      if (await this.#load(entry, "tools") && wasAsked) this.#host.onChange("tools");
      return;
    }
    throw unreadable("tools", { server: entry.source.name, why });
  }

  /** Loads a list again. Returns whether it is another one. */
  async #reload(server: string, list: ListName): Promise<boolean> {
    const entry = this.#entries.get(server);
    if (entry === undefined || entry.source.blocked() !== undefined) return false;
    // A failure is kept in the entry.
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
   * Returns whether a list is the one for the present client. A module shows all clients the same.
   */
  #isKnown({ source, lists, ages }: ListedServer, list: ListName): boolean {
    return lists.has(list) && (!source.tells || ages.get(list) === this.#age);
  }

  /**
   * Loads a list. Returns whether clients see another one than before, where an unknown list counts
   * as empty. Throws why it failed.
   */
  async #read(entry: ListedServer, list: ListName, tries = LOADS_MAX): Promise<boolean> {
    const { source, lists, failures, ages } = entry;
    if (source.tells && !lists.has(list)) await this.#takeEarlier(entry, list);
    const age = this.#age;
    const request = ++this.#requests;
    try {
      const all = await source.list(list);
      const loaded = { list, request, ...partsOf(entry, list, all) };
      // A list for another client is used only if clients change too fast.
      if (age !== this.#age && tries > 1) return await this.#read(entry, list, tries - 1);
      ages.set(list, age);
      failures.delete(list);
      return await this.#takeAnswer(entry, loaded);
    } catch (error) {
      const failure = asPmlError(error);
      failures.set(list, failure);
      throw failure;
    }
  }

  /**
   * Takes the answer to a request, unless the answer to a later request was taken. Returns whether
   * clients see another list than before.
   */
  async #takeAnswer(
    entry: ListedServer,
    loaded: Loaded & { readonly request: number },
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
        const isTaken = await this.#take(entry, { ...loaded, before });
        if (isTaken) return before !== undefined || items.length > 0;
      } else if (lists.get(list) === before) {
        lists.set(list, items);
        requests.set(list, request);
        return false;
      }
      // Another answer was taken while these items were compared or read.
    }
    return false;
  }

  /** Takes the list for a client with other capabilities, until the one for this client is there. */
  async #takeEarlier(entry: ListedServer, list: ListName): Promise<void> {
    const all = await entry.source.earlierList?.(list).catch(() => undefined);
    if (all === undefined || entry.lists.has(list)) return;
    await this.#take(entry, { list, ...partsOf(entry, list, all), before: undefined });
  }

  /** Takes another list, unless a newer one, or another server, came while its tools were read. */
  async #take(
    entry: ListedServer,
    { list, items, instructions, request, before }: Replacement,
  ): Promise<boolean> {
    const { source, lists } = entry;
    if (list === "skills") return await this.#takeSkills(entry, { items, request, before });
    const tools = items as readonly ToolDefinition[]; // each server checks the tools that it lists
    const { unusableTools } = await import("./_safe_schema.ts");
    const unusable = list === "tools" ? await unusableTools(tools) : undefined;
    const unapproved = unusable && await unapprovedOf(entry, tools, instructions);
    const { settings } = source;
    const visibleTools = tools.map((tool) => unapproved?.get(tool) ?? tool);
    const set = unusable && settings &&
      (await import("./_tool_settings.ts")).applied(visibleTools, settings);
    const isThere = this.#entries.get(source.name) === entry;
    if (lists.get(list) !== before || !isThere) return false;
    lists.set(list, items);
    if (request !== undefined) entry.requests.set(list, request);
    if (unusable === undefined || unapproved === undefined) return true;
    const { tools: ownTools = visibleTools, changes = [], unmet = [] } = set ?? {};
    const owns = new Map(visibleTools.map((tool, at) => [tool, tools[at] ?? tool]));
    const ownOf = (tool: ToolDefinition) => owns.get(tool) ?? tool;
    const all = new Map<ToolDefinition, ToolDefinition | string>([
      ...unapproved,
      ...[...changes].map(([tool, change]) => [ownOf(tool), change] as const),
      ...unusable,
    ]);
    const { catalog } = this.#host;
    entry.rejected = catalog.set(catalogServerOf(source), ownTools.map(ownOf), {
      changes: all,
      unapproved,
    });
    entry.omittedCount = tools.length - ownTools.length;
    entry.unmet = unmet;
    entry.unapproved = [...unapproved.keys()].map(({ name }) => name);
    entry.sentInstructions = instructions;
    entry.instructions = (instructions && unapproved.get(instructions) || instructions)
      ?.description;
    return true;
  }

  /** Takes other skills. Clients see a changed skill as it was approved. */
  async #takeSkills(
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

  /** Compares the skills of a server with the approved ones again. True if clients see others. */
  async #reviewSkills(entry: ListedServer): Promise<boolean> {
    const { source, lists, changedSkills } = entry;
    const items = lists.get("skills");
    if (items === undefined || source.blocked() !== undefined) return false;
    const { changed } = await skillsOf(source, items);
    if (`${changed}` === `${changedSkills}`) return false;
    return await this.#takeSkills(entry, { items, before: items });
  }

  /** Compares the tools of a server with the approved ones again. True if clients see others. */
  async #review(entry: ListedServer): Promise<boolean> {
    const { source, lists, sentInstructions } = entry;
    const items = lists.get("tools");
    if (items === undefined || source.blocked() !== undefined) return false;
    const tools = items as readonly ToolDefinition[]; // see #take
    const changed = await unapprovedOf(entry, tools, sentInstructions);
    const unapproved = [...changed.keys()].map(({ name }) => name);
    if (`${unapproved}` === `${entry.unapproved}`) return false;
    return await this.#take(entry, {
      list: "tools",
      items,
      instructions: sentInstructions,
      before: items,
    });
  }
}

/** Returns whether a list is there without starting a server. Reading the list reports errors. */
async function hasList(source: Server, list: ListName): Promise<boolean> {
  return await source.hasList?.(list).catch(() => true) ?? true;
}

/** Returns the definitions to show for tools and instructions that changed without an approval. */
async function unapprovedOf(
  { source }: ListedServer,
  tools: readonly ToolDefinition[],
  instructions: ToolDefinition | undefined,
): Promise<ReadonlyMap<ToolDefinition, ToolDefinition>> {
  const all = instructions === undefined ? tools : [...tools, instructions];
  return await source.approvedDefinitions?.(all) ?? new Map<ToolDefinition, ToolDefinition>();
}

/** Returns the skills that clients are shown, and the names of the pins of those that changed. */
async function skillsOf(
  source: Server,
  skills: readonly ListItem[],
): Promise<{ readonly visibleSkills: readonly ListItem[]; readonly changed: readonly string[] }> {
  const definitions = skills.map(skillDefinition);
  const approved = await source.approvedDefinitions?.(definitions) ??
    new Map<ToolDefinition, ToolDefinition>();
  const shownFor = (one: ToolDefinition) => {
    const other = approved.get(one);
    // guard: skill-list
    if (other !== undefined) return skillIn(other);
    return skillIn(one);
  };
  const items = definitions.map(shownFor).filter((one) => one !== undefined);
  return { visibleSkills: items, changed: [...approved.keys()].map(({ name }) => name) };
}

/** Returns the items of a list, and the instructions that a list of tools contains. */
function partsOf(
  entry: ListedServer,
  list: ListName,
  all: readonly ListItem[],
): Pick<Loaded, "items" | "instructions"> {
  if (list !== "tools") return { items: all, instructions: entry.sentInstructions };
  // Each server checks the tools that it lists.
  return {
    items: externalTools(all),
    instructions: instructionsIn(all as readonly ToolDefinition[]),
  };
}

/** Compares lists, which may be long, a piece at a time. */
async function isSame(one: readonly ListItem[], other: readonly ListItem[]): Promise<boolean> {
  if (one.length !== other.length) return false;
  const { CheckPauses } = await import("./_safe_schema.ts");
  const turns = new CheckPauses();
  for (const [at, item] of one.entries()) {
    if (JSON.stringify(item) !== JSON.stringify(other[at])) return false;
    await turns.next();
  }
  return true;
}

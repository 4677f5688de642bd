/**
 * Every server that is known, whether its tools are, and why not if they are not.
 *
 * @module
 */

import type { Keys } from "../config/keys.ts";
import type { Call } from "../core/call.ts";
import type { PmlError } from "../core/errors.ts";
import type { Maybe } from "../core/maybe.ts";
import type { FaceSettings } from "./options.ts";
import type { Exposure } from "../core/exposure.ts";
import { defined, type JsonObject, sorted } from "../core/json.ts";
import { parseToolId, splitToolId, type ToolId, toolId } from "../core/tool_id.ts";
import { type ListItem, type ListName, unreadable } from "../core/lists.ts";
import type { ToolDefinition } from "../core/tool.ts";
import type { Server } from "../core/server.ts";
import { settingOf } from "../core/tool_settings.ts";
import type { Policy } from "../policy/policy.ts";
import {
  type Catalog,
  type CatalogEntry,
  type KnownTool,
  WHOLE_SERVER,
} from "../search/catalog.ts";
import {
  type Entry,
  isAsked,
  newEntry,
  type ServerState,
  stateOf,
  type Trouble,
  troubleOf,
} from "./_entry.ts";
import { ListChanges } from "./_list_changes.ts";
import { ListLoader } from "./_list_loader.ts";

export type { ServerState, Trouble } from "./_entry.ts";

/** Of how many servers it is told that a list of theirs is missing. */
const MISSING_MAX = 3;

/** A list of one server. */
export interface Listed {
  readonly server: string;
  readonly items: readonly ListItem[];
}

/** What is known already of the server of a call that is settled. */
interface Known {
  readonly source?: Server | undefined;
  /** Whether it may not run now. */
  readonly isBlocked?: boolean;
}

/** What is looked at of a call to settle it. */
type Settled = Pick<Call, "id" | "arguments" | "method" | "fixed">;

/** What the servers need from outside. */
export interface ServersOptions {
  readonly catalog: Catalog;
  /** Returns how long a list waits for servers that were never asked, in milliseconds. */
  readonly waitMs: () => number;
  /** Told when a list has really changed. */
  readonly onChange: (list: ListName) => void;
  /** Is told of a name that somebody used and that is no tool. */
  readonly onUnknown?: (name: string) => void;
  /** Returns a tool that a registry or the cloud offers. */
  readonly offered?: (id: ToolId) => Pick<CatalogEntry, "tool" | "server"> | undefined;
  /** Knows which file switches a server off, and which tools are denied. */
  readonly policy?: Pick<Policy, "disabledIn" | "forbidden" | "now">;
  /** Fills in the arguments that are fixed for a tool. */
  readonly keys?: Pick<Keys, "fixed">;
}

/** The servers that there are, and what is allowed of them. */
interface Around extends Pick<ServersOptions, "catalog" | "policy" | "onUnknown"> {
  readonly entries: ReadonlyMap<string, Entry>;
}

/** What is known of a tool beside its definition. */
interface About {
  /** Whether it can change nothing and reach nobody; missing where nobody can tell. */
  readonly onlyReads?: boolean;
  readonly remark?: string;
}

/** Knows the servers and their lists, and fills the catalog with their tools. */
export class Servers implements Disposable {
  /** Has lists asked for again whose servers say that they have changed. */
  readonly changes: ListChanges;
  readonly #options: ServersOptions;
  readonly #lists: ListLoader;
  /** The lists that are being loaded. */
  readonly #loading = new Map<Promise<unknown>, { list: ListName; entry: Entry }>();
  /** In the order of their names. */
  #entries = new Map<string, Entry>();
  /** Counts the clients that were there, each with what it can do. */
  #age = 0;
  #able: JsonObject = {};

  /** Makes an empty set. */
  constructor(options: ServersOptions) {
    this.#options = options;
    this.changes = new ListChanges({
      reload: (server, list) => this.#reload(server, list),
      onChange: options.onChange,
    });
    this.#lists = new ListLoader({
      catalog: options.catalog,
      age: () => this.#age,
      isThere: (entry) => this.#entries.get(entry.source.name) === entry,
    });
  }

  /** Takes the servers that there are now; what is known of one that is the same stays known. */
  replace(sources: readonly Server[]): void {
    const before = this.#entries;
    const inOrder = sources.toSorted((one, other) => one.name < other.name ? -1 : 1);
    this.#entries = new Map(
      inOrder.map((source) => {
        const known = before.get(source.name);
        const isSame = source.definition !== undefined &&
          known?.source.definition === source.definition;
        return [source.name, isSame && known !== undefined ? known : newEntry(source)];
      }),
    );
    for (const [name, entry] of before) {
      if (this.#entries.get(name) !== entry) this.#options.catalog.remove(name);
    }
  }

  /** What the client said last that it can do. */
  get able(): JsonObject {
    return this.#able;
  }

  /** Takes note of what the client says that it can do: servers may show it other lists. */
  serve(said: JsonObject): void {
    if (sorted(said) === sorted(this.#able)) return;
    this.#able = said;
    this.#age++;
    for (const { waits } of this.#entries.values()) waits.clear();
  }

  /**
   * Asks the servers whose list is unknown, all or one, side by side. One that hangs delays no
   * other. `isWhole` waits for each until it answers or fails, for callers that get no notification
   * of a change. `atOnce` waits for cached lists only: `onChange` reports the others.
   */
  async prepare(
    list: ListName = "tools",
    { only, isWhole, atOnce }: {
      readonly only?: string | undefined;
      readonly isWhole?: boolean;
      readonly atOnce?: boolean;
    } = {},
  ): Promise<void> {
    if (list === "tools") await this.#reviewAll();
    const unknown = [...this.#entries.values()].filter((entry) =>
      !this.#lists.isKnown(entry, list) && (only === undefined || entry.source.name === only) &&
      entry.source.blocked() === undefined
    );
    if (unknown.length === 0) return;
    let isOver = false;
    await Promise.all(unknown.map(async (entry) => {
      const wasAsked = isAsked(entry, list);
      // A failure is kept in the entry and told by `states`.
      const load = this.#load(entry, list).then((isNew) => {
        if (isNew && (isOver || wasAsked)) this.#options.onChange(list);
      }, () => {});
      if (atOnce && !await hasList(entry.source, list)) return;
      const wait = isWhole ? load : entry.waits.get(list) ?? this.#inTime(load);
      // Other requests for the list keep their own limit.
      if (!isWhole) entry.waits.set(list, wait);
      // One that hangs is waited for once; one that failed may be well the next time.
      load.finally(() => entry.waits.delete(list));
      await wait;
    }));
    isOver = true;
  }

  async #inTime(load: Promise<unknown>): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, this.#options.waitMs());
    await Promise.race([load, promise]);
    clearTimeout(timer);
  }

  async #load(entry: Entry, list: ListName): Promise<boolean> {
    const load = this.#lists.load(entry, list);
    this.#loading.set(load, { list, entry });
    try {
      return await load;
    } finally {
      this.#loading.delete(load);
    }
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

  /** Resolves when no server is being asked for a list that is cached in a file. */
  async allLoaded(): Promise<void> {
    const asked = () =>
      [...this.#loading].flatMap(([load, one]) => one.entry.source.tells ? [load] : []);
    for (let all = asked(); all.length > 0; all = asked()) await Promise.allSettled(all);
  }

  /** Gives what is known of a list, by server; nothing of those that may not be asked. */
  listed(list: ListName): readonly Listed[] {
    return [...this.#entries.values()].flatMap(({ source, lists }) => {
      const items = lists.get(list);
      return items && source.blocked() === undefined ? [{ server: source.name, items }] : [];
    });
  }

  /** Says which servers failed to give a list, as the end of a message; empty where none did. */
  missing(list: ListName): string {
    return [...this.#entries.values()].flatMap(({ failures }) => failures.get(list) ?? [])
      .slice(0, MISSING_MAX).map(({ message }) => `; ${message}`).join("");
  }

  /** Returns the ids of the extensions of each server that may be asked, as far as they are known. */
  extensions(): ReadonlyMap<string, readonly string[]> {
    const sources = [...this.#entries.values()].map(({ source }) => source)
      .filter((source) => source.blocked() === undefined);
    return new Map(sources.map((source) => [source.name, source.extensions?.() ?? []]));
  }

  /** Tells whether there is a server of this name. */
  has(server: string): boolean {
    return this.#entries.has(server);
  }

  /**
   * Reads the name of a tool, as a list or a person writes it. Where the person gave the tool
   * another name, its id has the name that its server gave it, as rules have.
   */
  idOf(name: string): ToolId | undefined {
    const id = this.#options.catalog.byWireName(name) ?? parseToolId(name);
    if (id === undefined) return undefined;
    const { server, tool } = splitToolId(id);
    const settings = this.#sourceOf(id)?.settings;
    if (settings === undefined) return id;
    const own = [...settings.of].find(([, { rename }]) => rename === tool)?.[0];
    return own === undefined ? id : toolId(server, own);
  }

  /**
   * Returns a call as its server gets it, with the arguments that the person fixed. Throws if the
   * tool is switched off, or the call sets what is fixed. What nobody trusts yet changes nothing.
   */
  async settled<C extends Settled>(
    call: C,
    { source = this.#sourceOf(call.id), isBlocked = source?.blocked() !== undefined }: Known = {},
  ): Promise<C> {
    const { fixed } = call;
    const given = fixed ? { ...call, arguments: fixed.given, fixed: undefined } : call;
    const { server, tool } = splitToolId(call.id);
    const { settings } = source ?? {};
    const setting = settingOf(settings, tool);
    const isSaid = call.method === undefined && settings && setting !== undefined;
    // guard: fixed-untrusted
    if (!isSaid || isBlocked) return given;
    // guard: tool-disabled
    if (setting.disabled === true) throw await unknown(call.id, this);
    const filled = setting.arguments &&
      await this.#options.keys?.fixed(setting.arguments, {
        server,
        isOfUser: settings.file !== this.#options.policy?.now.loaded.file?.realPath,
      });
    if (filled === undefined) return given;
    const { withFixed } = await import("./_tool_settings.ts");
    return withFixed(given, { ...filled, file: settings.file });
  }

  #sourceOf(id: ToolId): Server | undefined {
    return this.#entries.get(splitToolId(id).server)?.source;
  }

  /** Compares the tools of a server with the approved ones again: an approval came, or a change. */
  async review(server: string): Promise<void> {
    const entry = this.#entries.get(server);
    if (entry !== undefined && await this.#lists.review(entry)) this.#options.onChange("tools");
  }

  /** Does so for the servers with changed tools: another process may have approved them. */
  async #reviewAll(): Promise<void> {
    const changed = [...this.#entries.values()].filter(({ unapproved }) => unapproved.length > 0);
    // A failure leaves the tools as they are shown.
    await Promise.all(changed.map((entry) => this.#lists.review(entry).catch(() => {})));
  }

  /** Takes note that a list of a server has changed. Calls wait for its new tools, lists do not. */
  expire(server: string, list: ListName): void {
    const entry = this.#entries.get(server);
    if (entry !== undefined && list === "tools") entry.isOutdated = true;
    this.changes.note(server, list);
  }

  /**
   * Returns a tool's definition as its server has it now. Throws UNKNOWN_TOOL, or why that failed.
   */
  definition(id: ToolId): Maybe<ToolDefinition> {
    const { server } = splitToolId(id);
    const loaded = this.#isLoaded(server) ? this.#options.catalog.get(id) : undefined;
    return loaded?.own ?? this.#loadDefinition(id, server);
  }

  async #loadDefinition(id: ToolId, server: string): Promise<ToolDefinition> {
    await this.#renew(server);
    return (await this.#known(id)).own;
  }

  /** Returns whether the tools of a server are known, and it reported no change of them. */
  #isLoaded(server: string): boolean {
    const entry = this.#entries.get(server);
    if (entry === undefined || entry.isOutdated || entry.renewing !== undefined) return false;
    const { source } = entry;
    return (source.tells || source.origin === "builtin") && this.#lists.isKnown(entry, "tools") &&
      source.blocked() === undefined;
  }

  async #known(id: ToolId): Promise<KnownTool> {
    await this.load(splitToolId(id).server);
    const known = this.#options.catalog.get(id);
    if (known !== undefined) return known;
    throw await unknown(id, this);
  }

  /** Tells what is known of a tool beside its definition. */
  async about(id: ToolId): Promise<About> {
    return await aboutOf(this.#sourceOf(id), splitToolId(id).tool);
  }

  /** Loads the tools of a server where they are not known; throws why that failed. */
  async load(server: string): Promise<void> {
    const entry = this.#entries.get(server);
    const isKnown = entry?.source.tells === true && this.#lists.isKnown(entry, "tools") &&
      entry.source.blocked() === undefined;
    if (entry !== undefined && !isKnown) await this.#loadApproved(entry);
  }

  /**
   * Returns the approved instructions of a server, for models. There are none of a server that may
   * not run, or of which every tool is denied.
   */
  instructionsOf(server: string): string | undefined {
    const { catalog, policy } = this.#options;
    const { source, lists, instructions } = this.#entries.get(server) ?? {};
    const isDenied = (id: ToolId) => policy?.now.judge(id).kind === "deny";
    const tools = lists?.has("tools") === true ? catalog.toolsOf(server) : [];
    const isHidden = source?.blocked() !== undefined || isDenied(toolId(server, WHOLE_SERVER)) ||
      tools.length > 0 && tools.every(({ id }) => isDenied(id));
    return isHidden ? undefined : instructions;
  }

  /**
   * Returns the instructions of the servers, by name, that belong into PML's with an exposure. Where
   * clients have tool sets there are none: PML's are written before it knows which client reads them.
   */
  instructionsIn(
    { exposure, toolsetFor }: Pick<FaceSettings, "toolsetFor"> & { readonly exposure: Exposure },
  ): ReadonlyMap<string, string> {
    if (exposure !== "full_proxy" || toolsetFor !== undefined) return new Map();
    const all = [...this.#entries.keys()].map((name) => [name, this.instructionsOf(name)] as const);
    return new Map(all.flatMap(([name, text]) => text === undefined ? [] : [[name, text]]));
  }

  /** Returns the instructions of a server as it sent them last, approved or not. */
  saidBy(server: string): ToolDefinition | undefined {
    return this.#entries.get(server)?.said;
  }

  /** Takes instructions that were approved earlier, until the server is asked. */
  recall(server: string, instructions: string): void {
    const entry = this.#entries.get(server);
    if (entry?.lists.has("tools") === false) entry.instructions = instructions;
  }

  /** Returns whether a registry offers a tool, so that its first use asks whatever the rules say. */
  asksFirst(id: ToolId): boolean {
    return this.#options.offered?.(id)?.server.asksFirst === true;
  }

  /** Gives a tool's definition as it is shown: also that of a server nobody has approved yet. */
  async shown(id: ToolId): Promise<ToolDefinition> {
    await this.#reviewAll();
    const offered = this.has(splitToolId(id).server) ? undefined : this.#options.offered?.(id);
    return offered?.tool ?? (await this.#known(id)).tool;
  }

  /** What the error for a name that is no tool tells of. */
  get around(): Around {
    return { entries: this.#entries, ...this.#options };
  }

  /** Tells how every server stands, by name. */
  states(): readonly ServerState[] {
    return [...this.#entries.values()].map(stateOf);
  }

  /** Tells which servers have a problem: those that failed first, then by name. */
  troubles(): readonly Trouble[] {
    const all = [...this.#entries.values()].flatMap((entry) => troubleOf(entry) ?? []);
    const last = ({ state }: Trouble) => Number(state !== "failed");
    return all.sort((one, other) => last(one) - last(other));
  }

  /** Loads the tools of a server again that reported a change of them. */
  async #renew(server: string): Promise<void> {
    const entry = this.#entries.get(server);
    // The list of a server that may not run is not asked for.
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
    // A call that comes meanwhile must not go on with the earlier definition.
    await entry.renewing;
  }

  // To read what a server says of itself is to run it.
  async #loadApproved(entry: Entry): Promise<void> {
    const why = entry.source.blocked();
    if (why === undefined) {
      const wasAsked = isAsked(entry, "tools");
      if (await this.#load(entry, "tools") && wasAsked) this.#options.onChange("tools");
      return;
    }
    throw unreadable("tools", { server: entry.source.name, why });
  }

  /** Asks for a list again; true if it is another one. */
  async #reload(server: string, list: ListName): Promise<boolean> {
    const entry = this.#entries.get(server);
    if (entry === undefined || entry.source.blocked() !== undefined) return false;
    // A failure is kept in the entry.
    return await this.#load(entry, list).catch(() => false);
  }

  /** Looks at no change any more. */
  [Symbol.dispose](): void {
    this.changes[Symbol.dispose]();
  }
}

/** Returns whether a list is there without starting a server. Reading the list reports errors. */
async function hasList(source: Server, list: ListName): Promise<boolean> {
  return await source.hasList?.(list).catch(() => true) ?? true;
}

async function aboutOf(server: Server | undefined, tool: string): Promise<About> {
  const said = [server?.onlyReads(tool), server?.remark(tool)] as const;
  const [onlyReads, remark] = await Promise.all(said).catch(() => []);
  return defined({ onlyReads, remark });
}

async function unknown(name: string, servers: Servers): Promise<PmlError> {
  const { unknownTool } = await import("./unknown_tool.ts");
  return unknownTool(name, servers);
}

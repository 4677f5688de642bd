/**
 * Compares servers and their tools with their pins: in `pml.lock`, which is part of the workspace,
 * and in the PML home, which contains the user's approvals. Both must match the present server. A
 * lock from a cloned repository approves nothing.
 *
 * @module
 */

import { messageOf } from "../core/errors.ts";
import type { ServerDefinition } from "../servers/kind.ts";
import { definitionKindOf, kindOf } from "../servers/kinds.ts";
import { shownAddress } from "../core/server_address.ts";
import { envFileNames } from "../config/env_file.ts";
import { serverText } from "../config/workspace_lines.ts";
import { memberOf, quoted, withoutUndefined } from "../core/json.ts";
import { memoized } from "../core/memo.ts";
import {
  OWN_SOURCE,
  type Pinned,
  type ServerIdentity,
  type Unapproved,
} from "./server_identity.ts";
import { INSTRUCTIONS } from "../protocol/lists.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import type { WarningLog } from "../io/private_files.ts";
import { turnTime, yieldTurn } from "../io/waiting.ts";
import { escapeInvisible } from "./trust_subject.ts";
import { definitionHash } from "./integrity.ts";
import { stampAt } from "../io/path_info.ts";
import { type LockEntry, lockText, lockVariables, parseLock } from "./lock.ts";
import { changesPins, type Pin, pinsAfter } from "./_pin_changes.ts";
import { PinFiles, type PinState } from "./_pin_files.ts";
import { ListedDefinitions } from "./_listed_definitions.ts";
import {
  differencesOf,
  moduleDifferences,
  type PinDifference,
  pinsOfTool,
  serverDifference,
  toolDifference,
} from "./_pin_differences.ts";
import type { Policy } from "./policy.ts";
import type { PinnedWorkspace } from "./pinned_workspace.ts";

/** A change of the pins, for the journal and the log. */
export interface PinEvent {
  readonly event: "pinned" | "stale" | "accepted";
  readonly server: string;
  readonly tool?: string;
  /** The hash of the tool's current definition. */
  readonly hash?: string;
}

/** Everything that is stored about the approved server of a name in one workspace. */
export interface ServerPins {
  /** The folder of the workspace. */
  readonly root: string;
  /** The pins of the server in `pml.lock`, as a text of a lock. */
  readonly lock: string;
  /** The pins of the server in the PML home, as a text of a lock. */
  readonly home: string;
  /** The file with the definitions that the server listed first; undefined if there is none. */
  readonly listed?: string;
}

/** The time between two checks of the files, in milliseconds. */
const FRESH_MS = 200;
/** The lines of questions that name the effect of a yes. */
const YES_TO_CHANGE =
  "If you answer yes, PML approves the change, too: later calls do not ask because of it";
const YES_TO_SERVER =
  "If you answer yes, PML approves this server, too: later calls do not ask because of it";
/** The time in milliseconds after which comparing tools yields to other work. */
const TURN_MS = 10;

/** The pins of a workspace. */
export class Pins {
  readonly #workspace: PinnedWorkspace;
  readonly #register = (value: string): void => this.#workspace.register(value);
  readonly #plain = (name: string): string | undefined => this.#workspace.plain(name);
  readonly #log: WarningLog;
  readonly #listeners = new Set<(event: PinEvent) => void>();
  readonly #reported = new Set<string>();
  readonly #identities = new WeakMap<ServerDefinition, ServerIdentity>();
  readonly #urlOf = memoized((own: ServerDefinition) =>
    definitionKindOf(own).identity(own).url ?? ""
  );
  #files: PinFiles;
  #listedDefinitions: ListedDefinitions;
  #state: Promise<PinState> | undefined;
  #current: PinState | undefined;
  #checkedAt = 0;
  /** Servers and definitions that are equal to their pins. */
  #matching = new WeakSet<object>();
  /** For each module, the names of its pinned tools. */
  readonly #moduleTools = memoized((_: ServerIdentity) => new Set<string>());
  readonly #hashOf = memoized((definition: ToolDefinition) => definitionHash(definition));
  #newPins: Pin[] = [];
  #writing: Promise<void> = Promise.resolve();
  readonly #recording = new Set<Promise<void>>();

  /** Takes the workspace; reads nothing. */
  constructor(workspace: PinnedWorkspace, log: WarningLog) {
    const { home, root } = workspace;
    this.#workspace = workspace;
    this.#log = log;
    this.#files = new PinFiles(home, root, log);
    this.#listedDefinitions = new ListedDefinitions(home, root, log);
  }

  /** The path of `pml.lock`. */
  get path(): string {
    return this.#files.path;
  }

  /** Adds a listener to changes of the pins. */
  listen(listener: (event: PinEvent) => void): void {
    this.#listeners.add(listener);
  }

  /** Clears the cached pins, because the configuration has changed. */
  forget(): void {
    this.#state = undefined;
    this.#newPins = [];
    this.#matching = new WeakSet();
    const { home, root } = this.#workspace;
    this.#files = new PinFiles(home, root, this.#log);
    this.#listedDefinitions = new ListedDefinitions(home, root, this.#log);
  }

  /** Returns the identity of a server of a file: the same object until its code changes. */
  identityOf(own: ServerDefinition, code: ServerCode = {}): ServerIdentity {
    const cached = this.#identities.get(own);
    const workspace = this.#workspace;
    const fileNames = envFileNames(own, workspace);
    const url = this.#urlOf(own);
    const shown = url && shownAddress(url, this.#plain);
    const address = shown === url ? undefined : shown;
    const isSame = cached !== undefined && cached.pinned.address === address &&
      cached.pinned.version === code.version &&
      cached.pinned.integrity === code.integrity &&
      String(cached.pinned.envFile) === String(fileNames);
    if (isSame) return cached;
    // These facts differ between machines.
    const machineFacts = { envFile: fileNames, address };
    const isInLock = workspace.isShared(own);
    const [register, plain] = [this.#register, this.#plain];
    const text = serverText(own, { isOfUser: !isInLock, register, fileNames, plain });
    const identity = ownIdentity(
      own,
      { ...code, facts: [text], isInLock },
      withoutUndefined(machineFacts),
    );
    this.#identities.set(own, identity);
    return identity;
  }

  /** Reads the pins. Throws CONFIG_INVALID if `pml.lock` is not valid. */
  async state(): Promise<PinState> {
    const now = performance.now();
    if (this.#state !== undefined && now - this.#checkedAt < FRESH_MS) return await this.#state;
    this.#checkedAt = now;
    const state = await this.#state?.catch(() => undefined);
    if (state !== undefined && state.stamp === this.#files.stamp()) return state;
    this.#matching = new WeakSet();
    this.#state = this.#files.read();
    this.#current = await this.#state;
    return this.#current;
  }

  /** Returns the last read pin of a name: from the lock, otherwise from the approvals. */
  pinOf(name: string): LockEntry | undefined {
    const { lock = {}, home = {} } = this.#current ?? {};
    return memberOf(lock, name) ?? memberOf(home, name);
  }

  /**
   * Returns the change of a server that the user must approve; undefined if there is none.
   * `isWanted` means that the user requested the change, so that it is not reported.
   */
  async findUnapproved(
    identity: ServerIdentity,
    { isWanted = false }: { readonly isWanted?: boolean } = {},
  ): Promise<Unapproved | undefined> {
    const state = await this.state();
    if (this.#matching.has(identity)) return undefined;
    const stale = serverDifference(identity, state);
    // guard: server-pins
    if (stale !== undefined) {
      const definition = (hash: string) => this.#files.definition(hash);
      const facts = [...stale.facts];
      // guard: module-definitions
      facts.push(...moduleDifferences(identity, { state, definition }));
      return this.#unapproved({ ...stale, facts }, { identity, compared: identity, isWanted });
    }
    this.#matching.add(identity);
    return undefined;
  }

  /** Returns the change of an approved server's tool that needs an approval. Pins a new tool. */
  async findUnapprovedTool(
    identity: ServerIdentity,
    definition: ToolDefinition,
  ): Promise<Unapproved | undefined> {
    await this.state();
    if (this.#matching.has(definition)) return undefined;
    // The state must include pins that are being written.
    await this.#writing;
    const state = await this.state();
    const pin = { identity, tool: { definition, hash: this.#hashOf(definition) } };
    const stale = toolDifference(pin, {
      state,
      definition: (hash) => this.#files.definition(hash),
      first: this.#changedFirst(pin),
    });
    // guard: definition-pins
    if (stale !== undefined) return this.#unapproved(stale, { ...pin, compared: definition });
    if (changesPins(state, pin)) this.#pinLater(pin);
    this.#matching.add(definition);
    if (kindOf(identity.pinned).isSandboxed) this.#moduleTools(identity).add(definition.name);
    return undefined;
  }

  /**
   * Compares the listed tools of a server with the approved ones, and records tools that are listed
   * for the first time. Returns the definition to show for each tool with an unapproved change.
   */
  async approvedDefinitions(
    identity: ServerIdentity,
    tools: readonly ToolDefinition[],
  ): Promise<ReadonlyMap<ToolDefinition, ToolDefinition>> {
    const changed = new Map<ToolDefinition, ToolDefinition>();
    // The definitions of a module are part of its code.
    if (kindOf(identity.pinned).isSandboxed) return changed;
    // If the pins cannot be read, the next call reports the error, and the tools are compared with
    // their first listing.
    const state = await this.state().catch(() => ({ lock: {}, home: {} }));
    const listed = this.#listedDefinitions;
    const hashOf = this.#hashOf;
    let turnStart = performance.now();
    for (const definition of tools) {
      // A getter, because computing the hash is slow and most tools are not pinned.
      const tool = {
        definition,
        get hash() {
          return hashOf(definition);
        },
      };
      const shown = this.#definitionToShow({ identity, tool }, state);
      if (shown !== undefined) changed.set(definition, shown);
      if (performance.now() - turnStart < TURN_MS) continue;
      await yieldTurn();
      turnStart = performance.now();
    }
    const newTools = tools.filter((tool) =>
      listed.first(identity, tool.name) === undefined && !changed.has(tool)
    );
    // These tools are new, so neither the list nor the next call waits until they are written.
    if (newTools.length > 0) this.#record(listed, { identity, newTools });
    return changed;
  }

  #record(
    listed: ListedDefinitions,
    { identity, newTools }: {
      readonly identity: ServerIdentity;
      readonly newTools: readonly ToolDefinition[];
    },
  ): void {
    const recording = listed.add(identity, newTools).catch((error) =>
      this.#log.warn(`Cannot record the tools of ${quoted(identity.name)}: ${messageOf(error)}`)
    ).finally(() => this.#recording.delete(recording));
    this.#recording.add(recording);
  }

  /** Returns the names of all tools that a server ever listed here, and `INSTRUCTIONS`. */
  listedBy(server: string): readonly string[] {
    return this.#listedDefinitions.names(server);
  }

  /** Returns the definition to show for a tool that changed; undefined if it did not. */
  #definitionToShow(
    pin: Required<Omit<Pin, "isApproved">>,
    state: Pick<PinState, "lock" | "home">,
  ): ToolDefinition | undefined {
    const { identity, tool: { definition: { name } } } = pin;
    const { approved, others } = pinsOfTool(pin, state);
    const first = this.#firstOf(identity, name);
    if (others.length === 0 && approved !== undefined) return undefined;
    if (others.length === 0) return this.#changedFirst(pin);
    for (const hash of [...approved === undefined ? [] : [approved], ...others]) {
      const known = this.#files.definition(hash) ??
        (first !== undefined && definitionHash(first) === hash ? first : undefined);
      if (known !== undefined) return known;
    }
    // Without an approved text only the name is shown.
    return { name, inputSchema: { type: "object" } };
  }

  /**
   * Returns the definition that a server listed first, if it differs from the current definition.
   */
  #changedFirst(
    { identity, tool }: Required<Omit<Pin, "isApproved">>,
  ): ToolDefinition | undefined {
    const first = this.#firstOf(identity, tool.definition.name);
    const isSame = first === undefined ||
      JSON.stringify(first) === JSON.stringify(tool.definition) ||
      definitionHash(first) === tool.hash;
    return isSame ? undefined : first;
  }

  /**
   * Returns the first definition of a tool. If a server listed tools before it had instructions,
   * its first instructions are empty.
   */
  #firstOf(identity: ServerIdentity, name: string): ToolDefinition | undefined {
    const first = this.#listedDefinitions.first(identity, name);
    const isLate = name === INSTRUCTIONS && this.#listedDefinitions.names(identity.name).length > 0;
    return first ?? (isLate ? { name, inputSchema: {} } : undefined);
  }

  /**
   * Returns the approved instructions of a server, or the first that it listed if none are
   * approved; undefined if the server is not approved. A client may see them before PML has
   * connected to the server.
   */
  async instructionsOf(identity: ServerIdentity): Promise<string | undefined> {
    const state = await this.state();
    if (await this.findUnapproved(identity, { isWanted: true }) !== undefined) return undefined;
    const tool = { definition: { name: INSTRUCTIONS, inputSchema: {} }, hash: "" };
    return this.#definitionToShow({ identity, tool }, state)?.description;
  }

  /**
   * Returns whether a server or a tool was found equal to its pins and the files did not change.
   */
  isKnownEqual(compared: ServerIdentity | ToolDefinition): boolean {
    if (!this.#matching.has(compared)) return false;
    const now = turnTime();
    if (now - this.#checkedAt < FRESH_MS) return true;
    const isSame = this.#current?.stamp === this.#files.stamp();
    // If the files changed, the caller reads them asynchronously.
    if (isSame) this.#checkedAt = now;
    return isSame;
  }

  /** Returns whether a tool of a module is pinned. Its definition changes only with the code. */
  hasPinnedTool(identity: ServerIdentity, tool: string): boolean {
    return this.#moduleTools(identity).has(tool);
  }

  /** Returns whether exactly this definition of a tool is pinned. Pins nothing. */
  async isPinned(identity: ServerIdentity, definition: ToolDefinition): Promise<boolean> {
    // The state must include pins that are being written.
    await this.#writing;
    const { lock, home } = await this.state();
    const hashIn = (entries: PinState["lock"]) =>
      memberOf(memberOf(entries, identity.name)?.tools ?? {}, definition.name);
    const hash = this.#hashOf(definition);
    const locked = identity.isInLock ? hashIn(lock) : undefined;
    return hashIn(home) === hash && (locked ?? hash) === hash;
  }

  /** Returns how `pml.lock` differs from the servers and the approvals. Starts no server. */
  async differences(identities: readonly ServerIdentity[]): Promise<readonly string[]> {
    return differencesOf(await this.state(), identities).map(escapeInvisible);
  }

  /** Updates the pins of known servers, except for changes that need an approval. */
  async renew(identities: readonly ServerIdentity[]): Promise<void> {
    const { lock, home } = await this.state();
    const known = identities.filter(({ name }) => memberOf(lock, name) ?? memberOf(home, name));
    await this.#write(known.map((identity) => ({ identity, isApproved: false })), this.#files);
  }

  /** Returns the pins of a server, for `restore()`. */
  async recordOf(server: string): Promise<ServerPins> {
    await this.flush();
    const { lock, home } = await this.#files.read();
    const textOf = (entries: PinState["lock"]) => {
      const entry = memberOf(entries, server);
      return lockText(entry === undefined ? {} : { [server]: entry });
    };
    const listed = this.#listedDefinitions.textOf(server);
    const { root } = this.#workspace;
    return { root, lock: textOf(lock), home: textOf(home), ...withoutUndefined({ listed }) };
  }

  /**
   * Replaces the pins of a server with those of a record. If the record is of another workspace, the
   * server must not be pinned there: those pins may belong to a server that its rules allow.
   */
  async restore(server: string, record: ServerPins): Promise<void> {
    await this.flush();
    const { home: homeFolder, root } = this.#workspace;
    const isHere = record.root === root;
    if (!isHere && stampAt(record.root) === undefined) return;
    const files = isHere ? this.#files : new PinFiles(homeFolder, record.root, this.#log);
    const recorded = {
      lock: parseLock(record.lock, "the record of the edit"),
      home: parseLock(record.home, "the record of the edit"),
    };
    let isRestored = false;
    await files.write(({ lock, home }) => {
      isRestored = isHere || memberOf(lock, server) === undefined &&
          memberOf(home, server) === undefined;
      return isRestored
        ? {
          lock: { ...without(lock, [server]), ...recorded.lock },
          home: { ...without(home, [server]), ...recorded.home },
        }
        : { lock, home };
    });
    if (isRestored) {
      const listed = new ListedDefinitions(homeFolder, record.root, this.#log);
      await listed.restore(server, record.listed);
    }
    this.forget();
  }

  /** Removes the pins of servers. */
  async remove(names: readonly string[]): Promise<void> {
    if (names.length === 0) return;
    await Promise.all(this.#recording);
    await this.#files.write(({ lock, home }) => ({
      lock: without(lock, names),
      home: without(home, names),
    }));
    await this.#listedDefinitions.remove(names);
    this.forget();
  }

  /** Resolves when all new pins are written. */
  async flush(): Promise<void> {
    await Promise.all([this.#writing, ...this.#recording]);
  }

  #unapproved(
    { code, facts, changedFrom }: PinDifference,
    { compared, isWanted, ...pin }: Omit<Pin, "isApproved"> & {
      /** The identity or the definition that differs, which matches after the approval. */
      readonly compared: object;
      readonly isWanted?: boolean;
    },
  ): Unapproved {
    const subject = subjectOf(pin);
    const key = JSON.stringify([subject, facts]);
    // Without a listener, the change is not marked as reported, so a later comparison reports it.
    const hasListener = this.#listeners.size > 0 && isWanted !== true;
    if (code !== "APPROVAL_REQUIRED" && hasListener && !this.#reported.has(key)) {
      this.#reported.add(key);
      this.#emit({ event: "stale", ...subject });
    }
    const accept = async () => {
      await this.#write([{ ...pin, isApproved: true }], this.#files);
      this.#matching.add(compared);
      this.#emit({ event: "accepted", ...subject });
    };
    const definition = pin.tool?.hash;
    return {
      code,
      facts: facts.map(escapeInvisible),
      effect: code === "APPROVAL_STALE" ? YES_TO_CHANGE : YES_TO_SERVER,
      ...withoutUndefined({ definition, changedFrom }),
      accept,
    };
  }

  /** Pins a new tool without delaying its call. */
  #pinLater(pin: Omit<Pin, "isApproved">): void {
    if (this.#newPins.push({ ...pin, isApproved: false }) > 1) return;
    const [pins, files] = [this.#newPins, this.#files];
    this.#writing = this.#writing.then(async () => {
      if (this.#newPins === pins) this.#newPins = [];
      await this.#write(pins, files);
      for (const pin of pins) this.#emit({ event: "pinned", ...subjectOf(pin) });
    }).catch((error) => this.#log.warn(`Cannot write new pins: ${messageOf(error)}`));
  }

  async #write(pins: readonly Pin[], files: PinFiles): Promise<void> {
    for (const { tool } of pins) {
      if (tool !== undefined) await files.keepDefinition(tool.hash, tool.definition);
    }
    const stamp = this.#current?.stamp;
    const after = await files.write((now) => {
      // Another process wrote the files, so earlier comparisons may no longer be valid.
      if (now.stamp !== stamp) this.#matching = new WeakSet();
      return pinsAfter(now, pins);
    });
    if (files !== this.#files) return;
    this.#current = after;
    this.#state = Promise.resolve(after);
  }

  #emit(event: PinEvent): void {
    for (const listener of this.#listeners) listener(event);
  }
}

function without(entries: PinState["lock"], names: readonly string[]): PinState["lock"] {
  return Object.fromEntries(Object.entries(entries).filter(([name]) => !names.includes(name)));
}

/** Returns the server and the tool of a pin, for an event. */
function subjectOf({ identity, tool }: Omit<Pin, "isApproved">): Omit<PinEvent, "event"> {
  const fields = tool && { tool: tool.definition.name, hash: tool.hash };
  return { server: identity.name, ...fields };
}

/** Returns the pins of the workspace of a policy. */
export function pinsOf(policy: Policy, log: WarningLog): Pins {
  const pins = new Pins(policy, log);
  policy.onChange((change) => change === "configuration" && pins.forget());
  return pins;
}

/** The hash of a server's code, and its version if it was installed. */
export interface ServerCode {
  readonly version?: string;
  readonly integrity?: string;
}

/** Returns the identity of a server that a file defines. */
function ownIdentity(
  own: ServerDefinition,
  { isInLock, facts: lines, ...code }: ServerCode & Pick<ServerIdentity, "facts" | "isInLock">,
  machineFacts: Pick<Pinned, "envFile" | "address">,
): ServerIdentity {
  const { name, kind } = own;
  const { env, headers, ...facts } = definitionKindOf(own).identity(own);
  const pinned = {
    ...{ source: OWN_SOURCE, kind, routing: "local", ...code } as const,
    ...facts,
    ...env && { env: lockVariables(env) },
    ...headers && { headers: lockVariables(headers) },
    ...machineFacts,
  };
  return { name, facts: lines, pinned, isCoveredByTrust: true, isInLock };
}

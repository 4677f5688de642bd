/**
 * Whether a server and its tools are those that were pinned: in `pml.lock`, which comes with the
 * workspace, and in the PML home, which holds what the person approved for it. Both must agree with
 * what is at hand; a lock that came with a clone approves nothing.
 *
 * @module
 */

import type { ServerIdentity, Unapproved } from "../core/server_identity.ts";
import type { ServerDefinition } from "../config/servers.ts";
import { memoized } from "../core/memo.ts";
import type { ToolDefinition } from "../core/tool.ts";
import { unhidden } from "../permissions/trust_gate.ts";
import { definitionHash } from "../registry/integrity.ts";
import { type LockEntry, pinnedIn } from "../registry/lock.ts";
import { type CodeAtHand, ownIdentity } from "./_own_identity.ts";
import { changesPins, type Pin, pinsAfter } from "./_pin_changes.ts";
import { PinFiles, type PinFilesOptions, type PinState } from "./_pin_files.ts";
import { differencesOf, staleServer, staleTool } from "./_stale.ts";
import type { Policy } from "./policy.ts";

export type { CodeAtHand } from "./_own_identity.ts";

/** What happened to pins, for the journal and the log. */
export interface PinEvent {
  readonly event: "pinned" | "stale" | "accepted";
  readonly server: string;
  readonly tool?: string;
  /** The hash of the tool's definition, as it is now. */
  readonly hash?: string;
}

/** What pins need from outside. */
export interface PinsOptions extends Omit<PinFilesOptions, "folder"> {
  /** The folder of `pml.lock`, as it is now. */
  readonly folder: () => string;
  /** Whether the workspace file defines a server, and not the person's own. */
  readonly isShared?: (own: ServerDefinition) => boolean;
}

/** What nobody has approved, before there is a yes to keep. */
type Stale = Pick<Unapproved, "code" | "facts">;

/** How long the files are not looked at again, in milliseconds. */
const LOOK_MS = 200;

/** The pins of a workspace. */
export class Pins {
  readonly #options: PinsOptions;
  readonly #listeners = new Set<(event: PinEvent) => void>();
  readonly #told = new Set<string>();
  readonly #identities = new WeakMap<ServerDefinition, ServerIdentity>();
  #files: PinFiles;
  #state: Promise<PinState> | undefined;
  #read: PinState | undefined;
  #looked = 0;
  /** Servers and definitions that were found to be the pinned ones. */
  #passed = new WeakSet<object>();
  readonly #modules = memoized((_: ServerIdentity) => new Set<string>());
  readonly #hash = memoized((definition: ToolDefinition) => definitionHash(definition));
  #waiting: Pin[] = [];
  #writing: Promise<void> = Promise.resolve();

  /** Takes where pins are; nothing is read before it is needed. */
  constructor(options: PinsOptions) {
    this.#options = options;
    this.#files = new PinFiles({ ...options, folder: options.folder() });
  }

  /** The path of `pml.lock`. */
  get path(): string {
    return this.#files.path;
  }

  /** Has `listener` told of what happens to pins. */
  listen(listener: (event: PinEvent) => void): void {
    this.#listeners.add(listener);
  }

  /** Looks at everything again: the configuration is another one. */
  forget(): void {
    this.#state = undefined;
    this.#waiting = [];
    this.#passed = new WeakSet();
    this.#files = new PinFiles({ ...this.#options, folder: this.#options.folder() });
  }

  /** Returns a server of a file as it is pinned: one object as long as its code is the same. */
  identityOf(own: ServerDefinition, code: CodeAtHand = {}): ServerIdentity {
    const known = this.#identities.get(own);
    const isSame = known?.pinned.version === code.version &&
      known?.pinned.integrity === code.integrity;
    if (known !== undefined && isSame) return known;
    const isShared = this.#options.isShared?.(own) === true;
    const identity = ownIdentity(own, { ...code, origin: isShared ? "workspace" : "person" });
    this.#identities.set(own, identity);
    return identity;
  }

  /** Reads what is pinned; throws CONFIG_INVALID where `pml.lock` is broken. */
  async state(): Promise<PinState> {
    const now = performance.now();
    if (this.#state !== undefined && now - this.#looked < LOOK_MS) return await this.#state;
    this.#looked = now;
    const known = await this.#state?.catch(() => undefined);
    if (known !== undefined && known.stamp === this.#files.stamp()) return known;
    this.#passed = new WeakSet();
    this.#state = this.#files.read();
    this.#read = await this.#state;
    return this.#read;
  }

  /** Gives what is pinned under a name, as it was read last: as the lock has it, else as approved. */
  pinned(name: string): LockEntry | undefined {
    const { lock = {}, home = {} } = this.#read ?? {};
    return pinnedIn(lock, name) ?? pinnedIn(home, name);
  }

  /** Tells what nobody has approved of a server; a yes is pinned. */
  async unapproved(identity: ServerIdentity): Promise<Unapproved | undefined> {
    const state = await this.state();
    if (this.#passed.has(identity)) return undefined;
    const stale = staleServer(identity, state);
    if (stale !== undefined) return this.#unapproved(stale, { identity, of: identity });
    this.#passed.add(identity);
    return undefined;
  }

  /** Tells whether a tool of an approved server is another one than was pinned; a new one is pinned. */
  async unapprovedTool(
    identity: ServerIdentity,
    definition: ToolDefinition,
  ): Promise<Unapproved | undefined> {
    let state = await this.state();
    if (this.#passed.has(definition)) return undefined;
    // What was seen a moment ago counts as seen.
    await this.#writing;
    state = await this.state();
    const pin = { identity, tool: { definition, hash: this.#hash(definition) } };
    const stale = await staleTool(pin, {
      state,
      definition: async (hash) => await this.#files.definition(hash),
    });
    if (stale !== undefined) return this.#unapproved(stale, { ...pin, of: definition });
    if (changesPins(state, pin)) this.#note(pin);
    this.#passed.add(definition);
    if (identity.pinned.kind === "deno") this.#modules(identity).add(definition.name);
    return undefined;
  }

  /** Tells whether a tool of a module is pinned: as long as its code is the same, so is the tool. */
  hasCode(identity: ServerIdentity, tool: string): boolean {
    return this.#modules(identity).has(tool);
  }

  /** Says in what `pml.lock` is not what is at hand, or not what was approved; nothing is started. */
  async differences(identities: readonly ServerIdentity[]): Promise<readonly string[]> {
    return differencesOf(await this.state(), identities).map(unhidden);
  }

  /** Pins servers as they are now, as far as that asks nobody. */
  async renew(identities: readonly ServerIdentity[]): Promise<void> {
    const { lock, home } = await this.state();
    const known = identities.filter(({ name }) => pinnedIn(lock, name) ?? pinnedIn(home, name));
    await this.#write(known.map((identity) => ({ identity, isSaid: false })), this.#files);
  }

  /** Takes servers out of what is pinned. */
  async remove(names: readonly string[]): Promise<void> {
    if (names.length === 0) return;
    const without = (entries: PinState["lock"]) =>
      Object.fromEntries(Object.entries(entries).filter(([name]) => !names.includes(name)));
    await this.#files.write(({ lock, home }) => ({ lock: without(lock), home: without(home) }));
    this.forget();
  }

  /** Settles when all that was first seen is kept. */
  async settled(): Promise<void> {
    await this.#writing;
  }

  #unapproved(
    { code, facts }: Stale,
    { of, ...pin }: Omit<Pin, "isSaid"> & { readonly of: object },
  ): Unapproved {
    const { identity: { name: server }, tool } = pin;
    const about = tool && { tool: tool.definition.name, hash: tool.hash };
    const key = JSON.stringify([server, about, facts]);
    // What nobody listens for yet is told the next time.
    const isHeard = this.#listeners.size > 0;
    if (code !== "APPROVAL_REQUIRED" && isHeard && !this.#told.has(key)) {
      this.#told.add(key);
      this.#tell({ event: "stale", server, ...about });
    }
    const accept = async () => {
      await this.#write([{ ...pin, isSaid: true }], this.#files);
      this.#passed.add(of);
      this.#tell({ event: "accepted", server, ...about });
    };
    return { code, facts: facts.map(unhidden), accept };
  }

  /** Pins what was first seen, without having its call wait. */
  #note(pin: Omit<Pin, "isSaid">): void {
    if (this.#waiting.push({ ...pin, isSaid: false }) > 1) return;
    const [pins, files] = [this.#waiting, this.#files];
    this.#writing = this.#writing.then(async () => {
      if (this.#waiting === pins) this.#waiting = [];
      await this.#write(pins, files);
      for (const { identity, tool } of pins) {
        const about = tool && { tool: tool.definition.name, hash: tool.hash };
        this.#tell({ event: "pinned", server: identity.name, ...about });
      }
    }).catch((error) => this.#options.warn(`Cannot keep what was first seen: ${error}`));
  }

  async #write(pins: readonly Pin[], files: PinFiles): Promise<void> {
    for (const { tool } of pins) {
      if (tool !== undefined) await files.keepDefinition(tool.hash, tool.definition);
    }
    const known = this.#read?.stamp;
    const after = await files.write((now) => {
      // Another process wrote meanwhile: what it pinned may be another one than was seen here.
      if (now.stamp !== known) this.#passed = new WeakSet();
      return pinsAfter(now, pins);
    });
    if (files !== this.#files) return;
    this.#read = after;
    this.#state = Promise.resolve(after);
  }

  #tell(event: PinEvent): void {
    for (const listener of this.#listeners) listener(event);
  }
}

/** Makes the pins of the workspace that a policy holds for. */
export function pinsOf(policy: Policy, warn: (message: string) => void): Pins {
  const loaded = () => policy.now.loaded;
  const pins = new Pins({
    home: loaded().environment.home,
    folder: () => loaded().workspace.root,
    // One that was replaced while it started is the person's no more than the workspace's.
    isShared: (own) => !loaded().person.servers.includes(own),
    warn,
  });
  policy.onChange((change) => change === "configuration" && pins.forget());
  return pins;
}

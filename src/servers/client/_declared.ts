/**
 * Keeps the client capabilities that PML declared to each server. A server of an older revision
 * gets them once, in its handshake. For a client with other capabilities it is restarted while no
 * request uses it.
 *
 * @module
 */

import { passedExtensions } from "../../protocol/extension_methods.ts";
import { defined, type JsonObject, sorted } from "../../core/json.ts";
import { memoized } from "../../core/memo.ts";
import { PassedCapabilities } from "../passed_capabilities.ts";
import type { UpstreamClients } from "./upstream_clients.ts";
import type { UpstreamServer } from "./upstream_server.ts";
import type { UpstreamsHost } from "./upstreams_host.ts";
import type { ServerConnection } from "./connection.ts";

interface ServerUse {
  declared: JsonObject;
  /** The number of calls, lists and followed resources that use the server. */
  users: number;
  connection: ServerConnection | undefined;
  /** The number of restarts that are still allowed. */
  restarts: number;
  /** Allows one restart more when it fires. */
  timer: ReturnType<typeof setTimeout> | undefined;
}

/**
 * How many times a server is restarted for another client, and after how many milliseconds one
 * restart more is allowed. Clients that take turns would restart it for each request.
 */
const [RESTARTS_MAX, RESTART_MS] = [8, 30_000];

/** Decides which client capabilities a server gets, and restarts it for others. */
export class DeclaredCapabilities implements Disposable {
  readonly #clients: Pick<UpstreamClients, "capabilities">;
  readonly #onStale: (name: string) => void;
  readonly #entries = new Map<string, ServerUse>();

  /**
   * Takes the clients, with the capabilities of the current one. Calls `onStale` for a server that
   * can now be restarted for that client and could not before.
   */
  constructor(
    clients: Pick<UpstreamClients, "capabilities">,
    onStale: (name: string) => void,
  ) {
    this.#clients = clients;
    this.#onStale = onStale;
  }

  /**
   * Returns the capabilities that a server gets, or already has if it cannot be restarted now. A
   * server of the stateless revision gets those of the client that asks.
   */
  capabilitiesFor(name: string, able?: JsonObject): JsonObject {
    const entry = this.#of(name);
    if (able !== undefined && entry.connection?.isStateless === true) return this.#current(able);
    const { declared, users, connection } = entry;
    const isBusy = users > 0 && connection?.isStateless !== true;
    return isBusy || entry.restarts === 0 && isOlder(entry) ? declared : this.#current();
  }

  /**
   * Begins a use of a server, which `end()` ends. An unused server that has other capabilities is
   * closed first.
   */
  begin(name: string): void {
    const entry = this.#of(name);
    if (entry.users === 0 && this.#isStale(entry)) this.#restart(name, entry);
    entry.users++;
  }

  /** Ends a use of a server. */
  end(name: string): void {
    const entry = this.#of(name);
    entry.users--;
    this.#report(name, entry);
  }

  /** Sets the connection of a server that has started. */
  connected(name: string, connection: ServerConnection): void {
    this.#of(name).connection = connection;
  }

  /** Keeps the capabilities that a server declared, for the clients that connect later. */
  keep(
    server: UpstreamServer,
    capabilities: JsonObject,
    { home, workspace }: Pick<UpstreamsHost, "home" | "workspace">,
  ): void {
    new PassedCapabilities(home).note({ ...server, workspace }, capabilities);
  }

  /** Returns the ids of the extensions that a server declared at its last start. */
  extensionsOf(name: string): readonly string[] {
    return this.#entries.get(name)?.connection?.extensions ?? [];
  }

  /** Stops the timers. */
  [Symbol.dispose](): void {
    for (const { timer } of this.#entries.values()) clearTimeout(timer);
  }

  /** Closes a server, so that it starts with other capabilities, unless it restarted too often. */
  #restart(name: string, entry: ServerUse): void {
    if (isOlder(entry)) {
      // guard: able-starts
      if (entry.restarts === 0) return;
      entry.restarts--;
      this.#refill(name, entry);
      void entry.connection?.[Symbol.asyncDispose]();
    }
    entry.declared = this.#current();
  }

  #refill(name: string, entry: ServerUse): void {
    entry.timer ??= setTimeout(() => {
      entry.timer = undefined;
      if (++entry.restarts < RESTARTS_MAX) this.#refill(name, entry);
      this.#report(name, entry);
    }, RESTART_MS);
    Deno.unrefTimer(entry.timer);
  }

  /** Calls `onStale` if a server can be restarted for the current client. */
  #report(name: string, entry: ServerUse): void {
    const { users, restarts, connection } = entry;
    const isFree = users === 0 && (restarts > 0 || connection?.alive === false);
    // A server of the stateless revision gets the capabilities with each request.
    if (isFree && connection?.isStateless === false && this.#isStale(entry)) this.#onStale(name);
  }

  #current(able?: JsonObject): JsonObject {
    return passedOn(this.#clients.capabilities(able));
  }

  #isStale({ declared }: ServerUse): boolean {
    const current = this.#current();
    return declared !== current && sorted(declared) !== sorted(current);
  }

  #of(name: string): ServerUse {
    const before = this.#entries.get(name);
    if (before !== undefined) return before;
    const entry: ServerUse = {
      declared: this.#current(),
      users: 0,
      connection: undefined,
      restarts: RESTARTS_MAX,
      timer: undefined,
    };
    this.#entries.set(name, entry);
    return entry;
  }
}

/** Returns whether a running server got the capabilities once, in its handshake. */
function isOlder({ connection }: ServerUse): boolean {
  return connection?.alive === true && !connection.isStateless;
}

/** Returns the capabilities of a client that PML passes on to servers. */
const passedOn = memoized((able: JsonObject): JsonObject => {
  const { elicitation, sampling, experimental } = able;
  const extensions = passedExtensions(able);
  const hasExtensions = Object.keys(extensions).length > 0;
  const others = { extensions: hasExtensions ? extensions : undefined, experimental };
  return defined({ elicitation, sampling, ...others });
});

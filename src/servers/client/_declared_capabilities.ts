/**
 * Keeps the client capabilities that PML declared to each server. A server of an older revision
 * gets them once, in its handshake. If a client with other capabilities connects, PML closes the
 * server as soon as no request uses it. The next use starts it again, with the new capabilities.
 *
 * @module
 */

import { passedExtensions } from "../../protocol/extension_methods.ts";
import { type JsonObject, sortedJsonText, withoutUndefined } from "../../core/json.ts";
import { memoized } from "../../core/memo.ts";
import { PassedCapabilities } from "../passed_capabilities.ts";
import type { UpstreamClients } from "./upstream_clients.ts";
import type { UpstreamServer } from "./wire.ts";
import type { UpstreamsHost } from "./upstreams_host.ts";
import type { ServerConnection } from "./connection.ts";

interface ServerUse {
  /** The client capabilities that the server has, or gets at its next start. */
  declared: JsonObject;
  /** The number of calls, lists and followed resources that use the server. */
  useCount: number;
  connection: ServerConnection | undefined;
  /** The number of restarts that are still allowed now. */
  restartsLeft: number;
  /** When this timer fires, one more restart is allowed. */
  timer: ReturnType<typeof setTimeout> | undefined;
}

/**
 * The maximum number of restarts of a server for another client, and after how many milliseconds
 * one more restart is allowed. Without a limit, two clients that send requests in turn would
 * restart the server for each request.
 */
const [RESTARTS_MAX, RESTART_MS] = [8, 30_000];

/** Decides which client capabilities a server gets, and closes the server if they change. */
export class DeclaredCapabilities implements Disposable {
  readonly #clients: Pick<UpstreamClients, "capabilities">;
  readonly #onStale: (name: string) => void;
  readonly #entries = new Map<string, ServerUse>();

  /**
   * Calls `onStale` with the name of a server as soon as the server is unused and the next use
   * would restart it for the current client.
   */
  constructor(
    clients: Pick<UpstreamClients, "capabilities">,
    onStale: (name: string) => void,
  ) {
    this.#clients = clients;
    this.#onStale = onStale;
  }

  /**
   * Returns the client capabilities for a server: of the current client, or the ones that the
   * server already has if it cannot be restarted now. `clientCapabilities` are those of the client
   * that sends a request. Only a server of the stateless revision gets them.
   */
  capabilitiesFor(name: string, clientCapabilities?: JsonObject): JsonObject {
    const entry = this.#entryOf(name);
    if (clientCapabilities !== undefined && entry.connection?.isStateless === true) {
      return this.#capabilitiesOf(clientCapabilities);
    }
    const { declared, useCount, connection } = entry;
    const isBusy = useCount > 0 && connection?.isStateless !== true;
    return isBusy || entry.restartsLeft === 0 && isRunningSession(entry)
      ? declared
      : this.#capabilitiesOf();
  }

  /**
   * Begins a use of a server, which `end()` ends. If the server is unused and has the capabilities
   * of an earlier client, closes it first.
   */
  begin(name: string): void {
    const entry = this.#entryOf(name);
    if (entry.useCount === 0 && this.#isStale(entry)) this.#restart(name, entry);
    entry.useCount++;
  }

  /** Ends a use of a server. */
  end(name: string): void {
    const entry = this.#entryOf(name);
    entry.useCount--;
    this.#reportIfStale(name, entry);
  }

  /** Sets the connection of a server that has started. */
  setConnection(name: string, connection: ServerConnection): void {
    this.#entryOf(name).connection = connection;
  }

  /**
   * Saves the capabilities that the server itself declared. PML declares them to clients that
   * connect later.
   */
  saveServerCapabilities(
    server: UpstreamServer,
    capabilities: JsonObject,
    { home, workspace }: Pick<UpstreamsHost, "home" | "workspace">,
  ): void {
    new PassedCapabilities(home).note({ ...server, workspace }, capabilities);
  }

  /** Returns the ids of the extensions that the server itself declared at its last start. */
  serverExtensions(name: string): readonly string[] {
    return this.#entries.get(name)?.connection?.extensions ?? [];
  }

  /** Stops the timers. */
  [Symbol.dispose](): void {
    for (const { timer } of this.#entries.values()) clearTimeout(timer);
  }

  /**
   * Closes a running server, unless it restarted too often. The next use starts it with the current
   * capabilities.
   */
  #restart(name: string, entry: ServerUse): void {
    if (isRunningSession(entry)) {
      // guard: able-starts
      if (entry.restartsLeft === 0) return;
      entry.restartsLeft--;
      this.#allowRestartLater(name, entry);
      void entry.connection?.[Symbol.asyncDispose]();
    }
    entry.declared = this.#capabilitiesOf();
  }

  /** After `RESTART_MS`, allows one more restart; repeats that until all restarts are allowed. */
  #allowRestartLater(name: string, entry: ServerUse): void {
    entry.timer ??= setTimeout(() => {
      entry.timer = undefined;
      if (++entry.restartsLeft < RESTARTS_MAX) this.#allowRestartLater(name, entry);
      this.#reportIfStale(name, entry);
    }, RESTART_MS);
    Deno.unrefTimer(entry.timer);
  }

  /** Calls `onStale` if a server is unused and the next use would restart it. */
  #reportIfStale(name: string, entry: ServerUse): void {
    const { useCount, restartsLeft, connection } = entry;
    const isFree = useCount === 0 && (restartsLeft > 0 || connection?.isAlive === false);
    // A server of the stateless revision gets the capabilities with each request.
    if (isFree && connection?.isStateless === false && this.#isStale(entry)) this.#onStale(name);
  }

  /** Returns the capabilities for servers of the given client, or of the current client. */
  #capabilitiesOf(clientCapabilities?: JsonObject): JsonObject {
    return toPassedCapabilities(this.#clients.capabilities(clientCapabilities));
  }

  #isStale({ declared }: ServerUse): boolean {
    const current = this.#capabilitiesOf();
    return declared !== current && sortedJsonText(declared) !== sortedJsonText(current);
  }

  #entryOf(name: string): ServerUse {
    const before = this.#entries.get(name);
    if (before !== undefined) return before;
    const entry: ServerUse = {
      declared: this.#capabilitiesOf(),
      useCount: 0,
      connection: undefined,
      restartsLeft: RESTARTS_MAX,
      timer: undefined,
    };
    this.#entries.set(name, entry);
    return entry;
  }
}

/**
 * Returns whether a server runs and has the capabilities from its handshake, so only a restart
 * changes them.
 */
function isRunningSession({ connection }: ServerUse): boolean {
  return connection?.isAlive === true && !connection.isStateless;
}

/** Returns the part of a client's capabilities that PML passes on to servers. */
const toPassedCapabilities = memoized((capabilities: JsonObject): JsonObject => {
  const { elicitation, sampling, experimental } = capabilities;
  const extensions = passedExtensions(capabilities);
  const hasExtensions = Object.keys(extensions).length > 0;
  const others = { extensions: hasExtensions ? extensions : undefined, experimental };
  return withoutUndefined({ elicitation, sampling, ...others });
});

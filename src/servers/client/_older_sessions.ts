/**
 * Sessions of the older revisions with servers that support the stateless revision, too. In a session,
 * a server can send requests to its client while a call runs. Clients of the older revisions
 * therefore call in a session.
 *
 * @module
 */

import { asPmlError } from "../../core/errors.ts";
import type { JsonObject } from "../../core/json.ts";
import { Pool, type PoolLimits, type PoolOwner, type PoolUse } from "../../io/pool.ts";
import { DeclaredCapabilities } from "./_declared.ts";
import type { ServerConnection } from "./connection.ts";
import type { UpstreamServer } from "./upstream_server.ts";
import { SessionLost } from "./wire.ts";

/** The options of `OlderSessions`. */
export interface OlderSessionsOptions {
  readonly limits: () => PoolLimits;
  /** Returns the capabilities that servers get for a client with these, or for all clients. */
  readonly capabilities: (able?: JsonObject) => JsonObject;
  /** Opens a session. `capabilities` returns those that the server gets. */
  readonly open: (
    server: UpstreamServer,
    capabilities: (able?: JsonObject) => JsonObject,
  ) => Promise<ServerConnection>;
}

/** A request that goes in a session if the server has sessions. */
export interface SessionUse<T> {
  /** The connection to the server in the stateless revision. */
  readonly stateless: ServerConnection;
  /** Sends the request on a connection. */
  readonly use: (connection: ServerConnection) => Promise<T>;
  /** Returns a signal that ends waiting for the session. */
  readonly signal: () => AbortSignal;
}

/** The sessions of this process: at most one for each server. */
export class OlderSessions implements PoolOwner, AsyncDisposable {
  readonly deathCode = "UPSTREAM_DOWN";
  readonly #options: OlderSessionsOptions;
  readonly #pool: Pool<ServerConnection>;
  readonly #declared: DeclaredCapabilities;
  /** The connections in the stateless revision of servers that have had a session. */
  readonly #withSession = new WeakSet<ServerConnection>();

  /** Takes the options; opens nothing. */
  constructor(options: OlderSessionsOptions) {
    this.#options = options;
    this.#pool = new Pool(this);
    this.#declared = new DeclaredCapabilities(options.capabilities, () => {});
  }

  /** The limits of sessions: only idle time closes one. */
  get poolLimits(): PoolLimits {
    return { ...this.#options.limits(), idleChildren: Infinity };
  }

  /** Uses the session with a server, or `newest` if no session can be opened. */
  async use<T>(server: UpstreamServer, request: SessionUse<T>): Promise<T> {
    const { name } = server;
    this.#declared.begin(name);
    try {
      return await this.#useSession(server, request);
    } finally {
      this.#declared.end(name);
    }
  }

  /** Keeps an open session with a server until a promise resolves. */
  async hold(server: UpstreamServer, until: Promise<void>): Promise<void> {
    const { name } = server;
    using lease = this.#pool.hold(name, server.version(), true);
    if (lease === undefined) return;
    this.#declared.begin(name);
    try {
      await until;
    } finally {
      this.#declared.end(name);
    }
  }

  /** Closes all sessions. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#declared[Symbol.dispose]();
    await this.#pool[Symbol.asyncDispose]();
  }

  async #useSession<T>(
    server: UpstreamServer,
    { stateless, use, signal }: SessionUse<T>,
  ): Promise<T> {
    const { name } = server;
    let isOpen = false;
    const own = (session: ServerConnection) => {
      isOpen = true;
      // If the session was interrupted, the server may be another program: tools are compared again.
      // guard: session-lists
      stateless.lostAt = Math.max(stateless.lostAt, session.lostAt);
      return use(session);
    };
    const once = () => {
      const [start, version] = [() => this.#open(server, stateless), server.version()];
      const options: PoolUse<ServerConnection, T> = { name, version, start, use: own };
      const isRunning = this.#pool.at(name, version) !== undefined;
      return this.#pool.use(name, isRunning ? options : { ...options, signal: signal() });
    };
    try {
      return await once().catch((error) => {
        // The server did not handle the request.
        if (!(error instanceof SessionLost)) throw error;
        isOpen = false;
        return once();
      });
    } catch (error) {
      if (isOpen) throw error;
      return await use(stateless);
    }
  }

  async #open(server: UpstreamServer, stateless: ServerConnection): Promise<ServerConnection> {
    const { name } = server;
    try {
      const session = await this.#options.open(
        server,
        (able) => this.#declared.capabilitiesFor(name, able),
      );
      this.#declared.connected(name, session);
      if (this.#withSession.has(stateless)) session.lostAt = performance.now();
      this.#withSession.add(stateless);
      return session;
    } catch (error) {
      stateless.foundNoSession({ isRefused: asPmlError(error).code === "UPSTREAM_PROTOCOL" });
      throw error;
    }
  }
}

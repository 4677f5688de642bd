/**
 * Sessions of the older revisions with servers that support the stateless revision, too. In a session,
 * a server can send requests to its client while a call runs. Clients of the older revisions
 * therefore call in a session.
 *
 * @module
 */

import { asPmlError } from "../../core/errors.ts";
import type { Cancellation } from "../../core/cancellation.ts";
import { Pool, type PoolLimits, type PoolOwner, type PoolUse } from "../../io/pool.ts";
import { DeclaredCapabilities } from "./_declared.ts";
import type { ServerConnection } from "./connection.ts";
import type { UpstreamServer } from "./upstream_server.ts";
import type { UpstreamsHost } from "./upstreams_host.ts";
import { SessionLost } from "./wire.ts";

/** Opens a session. `declared` has the capabilities that the server gets. */
export type OpenSession = (
  server: UpstreamServer,
  declared: DeclaredCapabilities,
) => Promise<ServerConnection>;

/** A request that goes in a session if the server has sessions. */
export interface SessionRequest {
  /** The connection to the server in the stateless revision. */
  readonly stateless: ServerConnection;
  /** Ends waiting for the session. */
  readonly cancellation: Cancellation;
}

/** Sends a request on a connection. */
type Use<T> = (connection: ServerConnection) => Promise<T>;

type SessionsHost = Pick<UpstreamsHost, "clients"> & { readonly limits: PoolLimits };

/** The sessions of this process: at most one for each server. */
export class OlderSessions implements PoolOwner, AsyncDisposable {
  readonly deathCode = "UPSTREAM_DOWN";
  readonly #host: SessionsHost;
  readonly #openSession: OpenSession;
  readonly #pool: Pool<ServerConnection>;
  readonly #declared: DeclaredCapabilities;
  /** The connections in the stateless revision of servers that have had a session. */
  readonly #withSession = new WeakSet<ServerConnection>();

  /** Takes the collaborators; opens nothing. */
  constructor(host: SessionsHost, open: OpenSession) {
    this.#host = host;
    this.#openSession = open;
    this.#pool = new Pool(this);
    this.#declared = new DeclaredCapabilities(host.clients, () => {});
  }

  /** The limits of sessions: only idle time closes one. */
  get poolLimits(): PoolLimits {
    return { ...this.#host.limits, idleChildren: Infinity };
  }

  /** Uses the session with a server, or the stateless connection if no session can be opened. */
  async use<T>(server: UpstreamServer, request: SessionRequest, use: Use<T>): Promise<T> {
    const { name } = server;
    this.#declared.begin(name);
    try {
      return await this.#useSession(server, request, use);
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
    { stateless, cancellation }: SessionRequest,
    use: Use<T>,
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
      return this.#pool.use(
        name,
        isRunning ? options : { ...options, signal: cancellation.signal },
      );
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
      const session = await this.#openSession(server, this.#declared);
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

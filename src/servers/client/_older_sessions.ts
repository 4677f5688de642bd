/**
 * Opens sessions of the older revisions with servers that also support the stateless revision. If a
 * client uses an older revision, its calls run in such a session: there the server can send
 * requests to the client during a call.
 *
 * @module
 */

import { asPmlError } from "../../core/errors.ts";
import type { Cancellation } from "../../core/cancellation.ts";
import { Pool, type PoolLimits, type PoolOwner, type PoolUse } from "../../io/pool.ts";
import { DeclaredCapabilities } from "./_declared_capabilities.ts";
import type { ServerConnection } from "./connection.ts";
import { SessionLost, type UpstreamServer } from "./wire.ts";
import type { UpstreamsHost } from "./upstreams_host.ts";

/** Opens a session. `declared` decides which client capabilities the server gets. */
export type OpenSession = (
  server: UpstreamServer,
  declared: DeclaredCapabilities,
) => Promise<ServerConnection>;

/** A request that is sent in a session, if the server has sessions. */
export interface SessionRequest {
  /** The connection to the server in the stateless revision. */
  readonly stateless: ServerConnection;
  /** Stops waiting for the session. */
  readonly cancellation: Cancellation;
}

/** Sends a request on a connection. */
type UseConnection<T> = (connection: ServerConnection) => Promise<T>;

type SessionsHost = Pick<UpstreamsHost, "clients"> & { readonly limits: PoolLimits };

/** The sessions of this process: at most one for each server. */
export class OlderSessions implements PoolOwner, AsyncDisposable {
  readonly deathCode = "UPSTREAM_DOWN";
  readonly #host: SessionsHost;
  readonly #openSession: OpenSession;
  readonly #pool: Pool<ServerConnection>;
  readonly #declared: DeclaredCapabilities;
  /** The stateless connections to servers that have had a session. */
  readonly #withSession = new WeakSet<ServerConnection>();

  /** `open` opens a session when the first request needs it. */
  constructor(host: SessionsHost, open: OpenSession) {
    this.#host = host;
    this.#openSession = open;
    this.#pool = new Pool(this);
    this.#declared = new DeclaredCapabilities(host.clients, () => {});
  }

  /** The limits of sessions. Only idle time closes a session, so their number has no limit. */
  get poolLimits(): PoolLimits {
    return { ...this.#host.limits, idleChildren: Infinity };
  }

  /** Uses the session with a server, or the stateless connection if no session can be opened. */
  async use<T>(server: UpstreamServer, request: SessionRequest, use: UseConnection<T>): Promise<T> {
    const { name } = server;
    this.#declared.begin(name);
    try {
      return await this.#useSession(server, request, use);
    } finally {
      this.#declared.end(name);
    }
  }

  /**
   * Keeps the session with a server open until a promise resolves. Does nothing without a session.
   */
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

  /** Closes the sessions with a server. */
  async end(name: string): Promise<void> {
    await this.#pool.end(name);
  }

  /** Closes all sessions. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#declared[Symbol.dispose]();
    await this.#pool[Symbol.asyncDispose]();
  }

  async #useSession<T>(
    server: UpstreamServer,
    { stateless, cancellation }: SessionRequest,
    use: UseConnection<T>,
  ): Promise<T> {
    const { name } = server;
    let isOpen = false;
    const useOpen = (session: ServerConnection) => {
      isOpen = true;
      // After an interruption the server may be another program, so its tools are compared again.
      // guard: session-lists
      stateless.lostAt = Math.max(stateless.lostAt, session.lostAt);
      return use(session);
    };
    const attempt = () => {
      const [start, version] = [() => this.#open(server, stateless), server.version()];
      const options: PoolUse<ServerConnection, T> = { name, version, start, use: useOpen };
      const isRunning = this.#pool.find(name, version) !== undefined;
      return this.#pool.use(
        name,
        isRunning ? options : { ...options, signal: cancellation.signal },
      );
    };
    try {
      return await attempt().catch((error) => {
        // A server that lost the session did not handle the request, so the request is sent again.
        if (!(error instanceof SessionLost)) throw error;
        isOpen = false;
        return attempt();
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
      this.#declared.setConnection(name, session);
      if (this.#withSession.has(stateless)) session.lostAt = performance.now();
      this.#withSession.add(stateless);
      return session;
    } catch (error) {
      stateless.foundNoSession({ isRefused: asPmlError(error).code === "UPSTREAM_PROTOCOL" });
      throw error;
    }
  }
}

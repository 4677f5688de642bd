/**
 * Pools connections to servers.
 *
 * @module
 */

import type { Agent } from "node:http";
import type { Certificates } from "../../../core/fetch.ts";
import { connector, type Proxy } from "./proxy.ts";

/** The properties that decide which connection a request may use. */
export interface Connecting {
  readonly url: URL;
  /** Whether the user configured the host. */
  readonly isNamed: boolean;
  readonly isSecure: boolean;
  /** The proxy for the request. */
  readonly proxy?: Proxy | undefined;
}

/** The number of idle connections per host. With fewer, a burst of calls would open new ones. */
const IDLE_CONNECTIONS = 64;
const IDLE_MS = 60_000;
/** Enough for the maximum number of parallel calls, and for streams. */
const CONNECTIONS = 512;

/** The pools, by the properties that decide which request may use them. */
export class Agents implements Disposable {
  readonly #agents = new Map<string, Agent>();
  readonly #ca: string | undefined;

  /** Creates the pools. A certificate replaces the default ones if there is one. */
  constructor(ca: string | undefined) {
    this.#ca = ca;
  }

  /**
   * Returns the agent for a request. A connection to a configured address must not serve a request
   * that may not go there, and a connection with a client certificate serves only its own origin.
   */
  async of(way: Connecting, certificates: Certificates | undefined): Promise<Agent> {
    const { url, isNamed, isSecure, proxy } = way;
    const { Agent } = isSecure ? await import("node:https") : await import("node:http");
    const own = isSecure && certificates?.origin === url.origin
      ? { certificates, ...await import("./certificates.ts") }
      : undefined;
    const stamp = own?.stampOfFiles(own.certificates);
    const key = JSON.stringify([isNamed, isSecure, proxy?.url, stamp]);
    const cachedAgent = this.#agents.get(key);
    if (cachedAgent !== undefined) return cachedAgent;
    const settings = {
      keepAlive: true,
      maxSockets: CONNECTIONS,
      maxFreeSockets: IDLE_CONNECTIONS,
      timeout: IDLE_MS,
      // These override environment variables: a proxy would resolve names again.
      rejectUnauthorized: true,
      proxyEnv: {},
      ...this.#ca !== undefined && { ca: this.#ca },
      ...own?.readCertificates(own.certificates),
    };
    const agent = new Agent(settings);
    if (proxy) agent.createConnection = connector(proxy);
    this.#agents.set(key, agent);
    return agent;
  }

  /** Closes all connections. */
  [Symbol.dispose](): void {
    for (const agent of this.#agents.values()) agent.destroy();
    this.#agents.clear();
  }
}

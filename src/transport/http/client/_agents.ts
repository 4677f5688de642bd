/**
 * Pools connections to servers.
 *
 * @module
 */

import type { Agent } from "node:http";
import type { Certificates } from "../../../core/fetch.ts";
import { createConnector, type Proxy } from "./proxy.ts";

/** The properties that decide which connection a request may use. */
export interface ConnectionTarget {
  readonly url: URL;
  /** Whether the user configured the host. */
  readonly isConfigured: boolean;
  readonly isSecure: boolean;
  /** The proxy for the request. */
  readonly proxy?: Proxy | undefined;
}

/**
 * The maximum number of idle connections per host. With fewer, a burst of calls would open new
 * connections.
 */
const IDLE_CONNECTIONS_MAX = 64;
/** How long an idle connection stays open, in milliseconds. */
const IDLE_MS = 60_000;
/** The maximum number of connections per host: enough for all parallel calls, and for streams. */
const CONNECTIONS_MAX = 512;

/** The pools, by the properties that decide which request may use them. */
export class Agents implements Disposable {
  readonly #agents = new Map<string, Agent>();
  readonly #ca: string | undefined;

  /** Creates the pools. `ca` replaces the default certificates; undefined keeps them. */
  constructor(ca: string | undefined) {
    this.#ca = ca;
  }

  /**
   * Returns the agent for a request. A connection to a configured address must not serve a request
   * that may not go to this address, and a connection with a client certificate serves only its own origin.
   */
  async agentFor(target: ConnectionTarget, certificates: Certificates | undefined): Promise<Agent> {
    const { url, isConfigured, isSecure, proxy } = target;
    const { Agent } = isSecure ? await import("node:https") : await import("node:http");
    const clientCertificates = isSecure && certificates?.origin === url.origin
      ? { certificates, ...await import("./certificates.ts") }
      : undefined;
    const stamp = clientCertificates?.stampOfFiles(clientCertificates.certificates);
    const key = JSON.stringify([isConfigured, isSecure, proxy?.url, stamp]);
    const cachedAgent = this.#agents.get(key);
    if (cachedAgent !== undefined) return cachedAgent;
    const settings = {
      keepAlive: true,
      maxSockets: CONNECTIONS_MAX,
      maxFreeSockets: IDLE_CONNECTIONS_MAX,
      timeout: IDLE_MS,
      // These settings override environment variables. A proxy from a variable would resolve the
      // checked name again.
      rejectUnauthorized: true,
      proxyEnv: {},
      ...this.#ca !== undefined && { ca: this.#ca },
      ...clientCertificates?.readCertificates(clientCertificates.certificates),
    };
    const agent = new Agent(settings);
    if (proxy) agent.createConnection = createConnector(proxy);
    this.#agents.set(key, agent);
    return agent;
  }

  /** Closes all connections. */
  [Symbol.dispose](): void {
    for (const agent of this.#agents.values()) agent.destroy();
    this.#agents.clear();
  }
}

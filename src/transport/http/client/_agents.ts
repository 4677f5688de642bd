/**
 * Keeps connections to servers open.
 *
 * @module
 */

import type { Agent } from "node:http";
import type { Certificates } from "../../../core/fetch.ts";
import { connector, type Proxy } from "./proxy.ts";

/** What decides which connection a request may use. */
export interface Connecting {
  readonly url: URL;
  /** Whether the person named the host. */
  readonly isNamed: boolean;
  readonly isSecure: boolean;
  /** The proxy that it goes through. */
  readonly proxy?: Proxy | undefined;
}

/**
 * The number of idle connections that are kept for each host. With fewer, a burst of calls would
 * open new ones.
 */
const IDLE_CONNECTIONS = 64;
const IDLE_MS = 60_000;
/** Enough for the calls that can run at the same time, and for streams. */
const CONNECTIONS = 512;

/** The connections, by what decides which request may use them. */
export class Agents implements Disposable {
  readonly #agents = new Map<string, Agent>();
  readonly #ca: string | undefined;

  /** Takes a certificate that is trusted instead of the usual ones, if there is one. */
  constructor(ca: string | undefined) {
    this.#ca = ca;
  }

  /**
   * Returns what connects for a request. A connection to an address that the person named must not
   * be used by a request that may not go there, and one with a certificate by no other server's.
   */
  async of(way: Connecting, certificates: Certificates | undefined): Promise<Agent> {
    const { url, isNamed, isSecure, proxy } = way;
    const { Agent } = isSecure ? await import("node:https") : await import("node:http");
    const own = isSecure && certificates?.origin === url.origin
      ? { certificates, ...await import("./certificates.ts") }
      : undefined;
    const stamp = own?.stampOfFiles(own.certificates);
    const key = JSON.stringify([isNamed, isSecure, proxy?.url, stamp]);
    const known = this.#agents.get(key);
    if (known !== undefined) return known;
    const settings = {
      keepAlive: true,
      maxSockets: CONNECTIONS,
      maxFreeSockets: IDLE_CONNECTIONS,
      timeout: IDLE_MS,
      // No environment variable changes these, because a proxy would resolve names again.
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

  /** Closes all of them. */
  [Symbol.dispose](): void {
    for (const agent of this.#agents.values()) agent.destroy();
    this.#agents.clear();
  }
}

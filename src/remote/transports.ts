/**
 * Chooses between the transports of an address: Streamable HTTP, and HTTP+SSE of 2024-11-05. Where
 * one is refused, the other is tried once, and what works is remembered.
 *
 * @module
 */

import { join } from "node:path";
import type { PmlError } from "../core/errors.ts";
import { sha256 } from "../core/hash.ts";
import { drop, keep, readKept } from "../io/kept.ts";
import { type OpenWire, SessionLost } from "../mcp_client/wire.ts";
import type { HttpWireOptions } from "./_http_session.ts";
import { HttpWire } from "./http_wire.ts";
import { SseWire } from "./sse_wire.ts";

/** What is known of an address. */
export interface AddressFacts {
  /** Whether the server took the handshake of the older revisions. */
  readonly isOlder?: boolean;
  /** Whether it is an address of HTTP+SSE. */
  readonly isSse?: boolean;
  /** Why the other transport was left. It has not been tried again since then. */
  readonly because?: PmlError | undefined;
}

/** A server over HTTP, and what is known of it. */
export interface TransportOptions extends Omit<HttpWireOptions, "transport"> {
  /** Whether the definition says that it is an address of HTTP+SSE. */
  readonly isSse?: boolean | undefined;
  /** What is known of addresses in this process. */
  readonly known: Map<string, AddressFacts>;
  /** The PML home, where addresses of HTTP+SSE are remembered. */
  readonly home?: string | undefined;
}

/** Returns the way to a server, by the transport that it is known to have. */
export function openTransport(server: TransportOptions): OpenWire {
  return (ends) => {
    const transport = new TransportChoice(server);
    const options = { ...server, transport };
    return transport.isSse ? new SseWire(options, ends) : new HttpWire(options, ends);
  };
}

/** The transport of one connection. */
export class TransportChoice implements AddressFacts {
  readonly isOlder: boolean;
  readonly isSse: boolean;
  readonly #options: TransportOptions;
  readonly #key: string;
  readonly #file: string | undefined;
  readonly #because: PmlError | undefined;

  /** Takes what is known now. */
  constructor(options: TransportOptions) {
    const { name, url, known, home } = this.#options = options;
    this.#key = `${name} ${url}`;
    if (home !== undefined) {
      this.#file = join(home, "lists", `sse-${sha256(url).slice(0, 32)}.json`);
    }
    const { isOlder, isSse, because }: AddressFacts = known.get(this.#key) ?? {};
    this.isOlder = isOlder ?? false;
    this.isSse = isSse ??
      (options.isSse || this.#file !== undefined && readKept(this.#file) === true);
    this.#because = because;
  }

  /** Remembers what turned out. */
  found(facts: AddressFacts): void {
    const { known, isSse } = this.#options;
    known.set(this.#key, { isOlder: this.isOlder, isSse: this.isSse, ...facts });
    if (!facts.isSse || isSse || this.#file === undefined) return;
    try {
      keep(this.#file, true);
    } catch {
      // Another process finds it out again.
    }
  }

  /** Has the other transport tried once where this one was refused. Returns the error for that. */
  other(error: PmlError): PmlError {
    const { name, known } = this.#options;
    const { code, detail } = error;
    const isRedirect = String(detail?.status).startsWith("3");
    if (code !== "UPSTREAM_PROTOCOL" || isRedirect) return error;
    if (this.isSse && this.#file !== undefined) drop(this.#file);
    if (this.#because === undefined) {
      known.set(this.#key, { isSse: !this.isSse, because: error });
      return new SessionLost(name, "it refused the transport");
    }
    known.delete(this.#key);
    // Most addresses are of Streamable HTTP.
    return this.isSse ? this.#because : error;
  }
}

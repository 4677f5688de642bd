/**
 * Chooses between the transports of an address: Streamable HTTP, and HTTP+SSE of 2024-11-05. If one
 * is refused, the other is tried once, and the one that works is stored.
 *
 * @module
 */

import { join } from "node:path";
import type { PmlError } from "../../core/errors.ts";
import { sha256 } from "../../core/hash.ts";
import { memoized } from "../../core/memo.ts";
import { drop, readCache, writeCache } from "../../io/kept.ts";
import { type OpenWire, SessionLost } from "../client/wire.ts";
import type { AddressState, HttpWireOptions } from "./http_options.ts";
import type { HttpServersHost, HttpValues } from "./http_options.ts";
import { HttpWire } from "./http_wire.ts";
import { SseWire } from "./sse_wire.ts";
import type { AddressFacts } from "./http_options.ts";

/**
 * How long it is remembered that a server takes the handshake of the older revisions, in
 * milliseconds. A server that did not answer may only have started slowly.
 */
const REMEMBERED_MS = { refused: 7 * 86_400_000, silent: 86_400_000 };
/**
 * How long a server may take to answer `server/discover` before `initialize` is tried, in
 * milliseconds. Servers of the older revisions exist that never answer an unknown method.
 */
const DISCOVER_MS = 3_000;
/** How long no session is tried after one failed without a refusal, in milliseconds. */
const NO_SESSION_MS = 60_000;

/** Returns the facts about addresses, by the names and addresses of their servers. */
const knownOf = memoized((_: HttpServersHost) => new Map<string, AddressFacts>());

/** Opens a connection to a server by the transport that it is known to support. */
export function openTransport(
  server: HttpValues & Pick<HttpWireOptions, "authorization">,
  host: HttpServersHost,
): OpenWire {
  return (events) => {
    const { fetch, limits, room } = host;
    const transport = new TransportChoice(server, host);
    const options = { ...server, fetch, limits, room, addressState: transport };
    return transport.isSse ? new SseWire(options, events) : new HttpWire(options, events);
  };
}

/** The transport of one connection. */
export class TransportChoice implements AddressFacts, AddressState {
  readonly isSse: boolean;
  readonly olderUntil: number;
  readonly #olderFile: string;
  readonly #statelessFile: string;
  readonly #server: HttpValues;
  readonly #facts: Map<string, AddressFacts>;
  readonly #key: string;
  readonly #file: string;
  readonly #because: PmlError | undefined;

  /** Reads the present facts. */
  constructor(server: HttpValues, host: HttpServersHost) {
    const { name, url } = this.#server = server;
    this.#facts = knownOf(host);
    this.#key = `${name} ${url}`;
    const fileOf = (fact: string) =>
      join(host.home, "lists", `${fact}-${sha256(url).slice(0, 32)}.json`);
    this.#file = fileOf("sse");
    this.#olderFile = fileOf("older");
    this.#statelessFile = fileOf("newest");
    const { olderUntil, isSse, because }: AddressFacts = this.#facts.get(this.#key) ?? {};
    this.olderUntil = olderUntil ?? Number(readCache(this.#olderFile) ?? 0);
    this.isSse = isSse ?? server.isSse ?? readCache(this.#file) === true;
    this.#because = because;
  }

  /** How long the stateless revision is tried first; undefined for a server of an older one. */
  get discoverMs(): number | undefined {
    return isAhead(this.olderUntil) ? undefined : DISCOVER_MS;
  }

  /** Whether a server of the stateless revision may have sessions of the older ones. */
  get mayHaveSession(): boolean {
    const { noSessionUntil } = this.#facts.get(this.#key) ?? {};
    if (noSessionUntil !== undefined) return !isAhead(noSessionUntil);
    const until = Number(readCache(this.#statelessFile) ?? 0);
    this.store({ noSessionUntil: until });
    return !isAhead(until);
  }

  /** Stores that a session could not be opened; for a long time if the server refused it. */
  foundNoSession({ isRefused }: { readonly isRefused: boolean }): void {
    const noSessionUntil = Date.now() + (isRefused ? REMEMBERED_MS.refused : NO_SESSION_MS);
    this.store({ noSessionUntil });
    if (isRefused) this.#keep(this.#statelessFile, noSessionUntil);
  }

  /** Stores that the server accepted the handshake of the older revisions. */
  foundOlder({ isSilent }: { readonly isSilent: boolean }): void {
    const ms = isSilent ? REMEMBERED_MS.silent : REMEMBERED_MS.refused;
    const olderUntil = Date.now() + ms;
    this.store({ olderUntil });
    this.#keep(this.#olderFile, olderUntil);
  }

  /** Stores a fact about the address. */
  store(facts: AddressFacts): void {
    const { olderUntil, isSse } = this;
    const { noSessionUntil } = this.#facts.get(this.#key) ?? {};
    this.#facts.set(this.#key, {
      olderUntil,
      isSse,
      ...noSessionUntil !== undefined && { noSessionUntil },
      ...facts,
    });
    if (isSse && !this.#server.isSse) this.#keep(this.#file, true);
  }

  #keep(file: string, fact: unknown): void {
    try {
      writeCache(file, fact);
    } catch {
      // If it cannot be written, another process finds it out again.
    }
  }

  /** Makes the next connection try the other transport once. Returns the error for the refusal. */
  other(error: PmlError): PmlError {
    if (error.code !== "UPSTREAM_PROTOCOL") return error;
    if (this.isSse) drop(this.#file);
    if (this.#because === undefined) {
      this.#facts.set(this.#key, { isSse: !this.isSse, because: error });
      return new SessionLost(this.#server.name, "it refused the transport");
    }
    this.#facts.delete(this.#key);
    // Most addresses support Streamable HTTP, so its error is more useful.
    return this.isSse ? this.#because : error;
  }
}

/** Returns whether a stored time is ahead. A time too far ahead was written with a wrong clock. */
function isAhead(until: number): boolean {
  const remaining = until - Date.now();
  return remaining > 0 && remaining <= REMEMBERED_MS.refused;
}

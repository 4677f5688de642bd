/**
 * Chooses the transport of an address: Streamable HTTP, or HTTP+SSE of the revision 2024-11-05. If
 * the server refuses the first transport, PML tries the other transport once. The transport that
 * works is stored.
 *
 * @module
 */

import { join } from "node:path";
import type { PmlError } from "../../core/errors.ts";
import { sha256 } from "../../core/hash.ts";
import { memoized } from "../../core/memo.ts";
import { readCache, removeIfPossible, writeCache } from "../../io/cache_files.ts";
import { type OpenWire, SessionLost } from "../client/wire.ts";
import type { AddressState, HttpWireOptions } from "./http_options.ts";
import type { HttpServersHost, HttpValues } from "./http_options.ts";
import { HttpWire } from "./http_wire.ts";
import { SseWire } from "./sse_wire.ts";
import type { AddressFacts } from "./http_options.ts";

/**
 * How long PML remembers that a server accepts only the older revisions, in milliseconds. The time
 * is shorter for a server that did not answer, because it may only have started slowly.
 */
const REMEMBERED_MS = { refused: 7 * 86_400_000, silent: 86_400_000 };
/**
 * How long a server may take to answer `server/discover` before `initialize` is tried, in
 * milliseconds. Some servers of the older revisions never answer an unknown method.
 */
const DISCOVER_MS = 3_000;
/** How long PML tries no session after a try that failed without a refusal, in milliseconds. */
const NO_SESSION_MS = 60_000;

/** Returns the known facts about addresses, by the name and address of a server. */
const factsOf = memoized((_: HttpServersHost) => new Map<string, AddressFacts>());

/** Returns a function that connects to a server by the transport that it probably supports. */
export function openTransport(
  server: HttpValues & Pick<HttpWireOptions, "authorization">,
  host: HttpServersHost,
): OpenWire {
  return (events) => {
    const { fetch, limits, waitForMemory } = host;
    const transport = new TransportChoice(server, host);
    const options = { ...server, fetch, limits, waitForMemory, addressState: transport };
    return transport.isSse ? new SseWire(options, events) : new HttpWire(options, events);
  };
}

/** Chooses the transport of one connection, and stores facts about the address. */
export class TransportChoice implements AddressFacts, AddressState {
  readonly isSse: boolean;
  readonly olderUntil: number;
  readonly #olderFile: string;
  readonly #statelessFile: string;
  readonly #server: HttpValues;
  readonly #facts: Map<string, AddressFacts>;
  readonly #key: string;
  readonly #sseFile: string;
  readonly #firstError: PmlError | undefined;

  /** Reads the known facts about the address. */
  constructor(server: HttpValues, host: HttpServersHost) {
    const { name, url } = this.#server = server;
    this.#facts = factsOf(host);
    this.#key = `${name} ${url}`;
    const fileOf = (fact: string) =>
      join(host.home, "lists", `${fact}-${sha256(url).slice(0, 32)}.json`);
    this.#sseFile = fileOf("sse");
    this.#olderFile = fileOf("older");
    this.#statelessFile = fileOf("newest");
    const { olderUntil, isSse, firstError }: AddressFacts = this.#facts.get(this.#key) ?? {};
    this.olderUntil = olderUntil ?? Number(readCache(this.#olderFile) ?? 0);
    this.isSse = isSse ?? server.isSse ?? readCache(this.#sseFile) === true;
    this.#firstError = firstError;
  }

  /**
   * How long the stateless revision is tried first; undefined if the server has only older ones.
   */
  get discoverMs(): number | undefined {
    return isInFuture(this.olderUntil) ? undefined : DISCOVER_MS;
  }

  /** Whether a server of the stateless revision may also have sessions of the older revisions. */
  get mayHaveSession(): boolean {
    const { noSessionUntil } = this.#facts.get(this.#key) ?? {};
    if (noSessionUntil !== undefined) return !isInFuture(noSessionUntil);
    const until = Number(readCache(this.#statelessFile) ?? 0);
    this.store({ noSessionUntil: until });
    return !isInFuture(until);
  }

  /**
   * Stores that no session could be opened: for a week if the server refused it, else for a minute.
   */
  foundNoSession({ isRefused }: { readonly isRefused: boolean }): void {
    const noSessionUntil = Date.now() + (isRefused ? REMEMBERED_MS.refused : NO_SESSION_MS);
    this.store({ noSessionUntil });
    if (isRefused) this.#writeFact(this.#statelessFile, noSessionUntil);
  }

  /** Stores that the server accepted the handshake of the older revisions. */
  foundOlder({ isSilent }: { readonly isSilent: boolean }): void {
    const ms = isSilent ? REMEMBERED_MS.silent : REMEMBERED_MS.refused;
    const olderUntil = Date.now() + ms;
    this.store({ olderUntil });
    this.#writeFact(this.#olderFile, olderUntil);
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
    if (isSse && !this.#server.isSse) this.#writeFact(this.#sseFile, true);
  }

  #writeFact(file: string, fact: unknown): void {
    try {
      writeCache(file, fact);
    } catch {
      // If the fact cannot be written, another process finds it out again.
    }
  }

  /**
   * Makes the next connection try the other transport, once. Returns the error to report: after
   * both transports failed, the error of Streamable HTTP.
   */
  useOtherTransport(error: PmlError): PmlError {
    if (error.code !== "UPSTREAM_PROTOCOL") return error;
    if (this.isSse) removeIfPossible(this.#sseFile);
    if (this.#firstError === undefined) {
      this.#facts.set(this.#key, { isSse: !this.isSse, firstError: error });
      return new SessionLost(this.#server.name, "it refused the transport");
    }
    this.#facts.delete(this.#key);
    // Most addresses support Streamable HTTP, so its error is more useful.
    return this.isSse ? this.#firstError : error;
  }
}

/**
 * Returns whether a stored time is in the future. A time too far in the future does not count,
 * because it was written with a wrong clock.
 */
function isInFuture(until: number): boolean {
  const remaining = until - Date.now();
  return remaining > 0 && remaining <= REMEMBERED_MS.refused;
}

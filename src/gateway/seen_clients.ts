/**
 * Records the clients of this PML home, and whether each can show PML's questions to its user, in
 * the file `clients.json` for `pml doctor`. Also has the types for the clients of a running PML that
 * have no session.
 *
 * @module
 */

import { join } from "node:path";
import { isObject, visible } from "../core/json.ts";
import { readCache, writeCache } from "../io/cache_files.ts";
import { withLock } from "../io/private_files.ts";

/** A client of the stateless revision over HTTP. It sends single requests, and has no session. */
export interface SessionlessClient {
  readonly name: string;
  /** The version that the client states; empty if it states none. */
  readonly version: string;
  /** Whether the client can show a form to its user. */
  readonly asks: boolean;
  /** When its first request came, in milliseconds since 1970. */
  readonly since: number;
}

/** The clients of the stateless revision that a running PML serves over HTTP. */
export interface SessionlessClients extends AsyncDisposable {
  /** Returns the clients that sent a request in the last minutes. */
  recent(): readonly SessionlessClient[];
}

/** A client as it describes itself, and when it was seen. */
export interface SeenClient {
  /** The name and the version, safe to print. */
  readonly name: string;
  readonly version: string;
  /** Whether it can show a form to its user. */
  readonly asks: boolean;
  /** When it was seen last, in milliseconds since 1970. */
  readonly seen: number;
}

/** The maximum number of clients in the file. The client that was seen longest ago is dropped. */
const CLIENTS_MAX = 50;
/** For how long a recorded client is not written again, in milliseconds. */
const REWRITE_MS = 3_600_000;
/** For how long `pml doctor` reports a client after it was seen last, in milliseconds. */
const REPORTED_MS = 30 * 24 * 3_600_000;
/** Longer names and versions are cut to these lengths, in characters; a mark follows. */
const NAME_MAX = 100;
const VERSION_MAX = 40;

/** Returns a client with a name and a version that are safe to print. */
export function seenClient(
  { name, version, asks }: Pick<SeenClient, "name" | "version" | "asks">,
  now: number = Date.now(),
): SeenClient {
  return { name: visible(name, NAME_MAX), version: visible(version, VERSION_MAX), asks, seen: now };
}

/**
 * Adds clients to the file in the PML home. Other processes may do the same at the same time.
 * Writes nothing if the file has a recent entry of each client.
 */
export async function recordClients(
  home: string,
  clients: readonly SeenClient[],
  now: number = Date.now(),
): Promise<void> {
  const recorded = readClients(home, now);
  const isFresh = (one: SeenClient) =>
    recorded.some((other) => isSame(one, other) && other.seen > now - REWRITE_MS);
  if (clients.every(isFresh)) return;
  await withLock(join(home, "clients.lock"), () => {
    const others = readClients(home, now).filter((one) =>
      !clients.some((other) => isSame(one, other))
    );
    const all = [...clients, ...others].sort((one, other) => other.seen - one.seen);
    writeCache(fileIn(home), { version: 1, clients: all.slice(0, CLIENTS_MAX) });
    return Promise.resolve();
  });
}

/**
 * Returns the clients that cannot show questions. If several versions of a client are recorded,
 * only the latest seen one counts.
 */
export function clientsThatCannotAsk(
  home: string,
  now: number = Date.now(),
): readonly SeenClient[] {
  const latest = new Map<string, SeenClient>();
  for (const one of readClients(home, now)) {
    const other = latest.get(one.name);
    if (other === undefined || other.seen < one.seen) latest.set(one.name, one);
  }
  return [...latest.values()].filter(({ asks, seen }) => !asks && seen > now - REPORTED_MS);
}

/** Reads the file. Leaves out invalid entries. */
function readClients(home: string, now: number): readonly SeenClient[] {
  const value = readCache(fileIn(home));
  const all = isObject(value) && Array.isArray(value.clients) ? value.clients : [];
  return all.slice(0, CLIENTS_MAX).filter(isSeen).map(({ name, version, asks, seen }) => ({
    name: visible(name, Infinity),
    version: visible(version, Infinity),
    asks,
    // The clock may have been ahead when the entry was written.
    seen: Math.min(seen, now),
  }));
}

function isSame(one: SeenClient, other: SeenClient): boolean {
  return one.name === other.name && one.version === other.version && one.asks === other.asks;
}

function isSeen(value: unknown): value is SeenClient {
  return isObject(value) && typeof value.name === "string" && typeof value.version === "string" &&
    typeof value.asks === "boolean" && Number.isSafeInteger(value.seen);
}

function fileIn(home: string): string {
  return join(home, "clients.json");
}

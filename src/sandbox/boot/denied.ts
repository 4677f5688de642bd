/**
 * What a module cannot use, and the words that say what to use instead.
 *
 * @module
 */

import { denied } from "./asking.ts";

const NET = "local modules are network-isolated, and this module has no net grant (host.fetch)";
const RUN = "this module has no run grant (host.exec)";
const LINKS = "a module cannot make links";
const WHY: Readonly<Record<string, readonly string[]>> = {
  [NET]: [
    "connect",
    "connectTls",
    "connectQuic",
    "listen",
    "listenTls",
    "listenDatagram",
    "resolveDns",
    "startTls",
    "serve",
    "createHttpClient",
    "QuicEndpoint",
    "upgradeWebTransport",
  ],
  [RUN]: ["Command", "kill"],
  [LINKS]: ["link", "linkSync", "symlink", "symlinkSync"],
  "a module cannot load native code": ["dlopen"],
  "there is no shared store between modules": ["openKv"],
  "paths are relative to the workspace, always": ["chdir"],
  "a module cannot change owners, modes or times": [
    "chmod",
    "chmodSync",
    "chown",
    "chownSync",
    "umask",
    "utime",
    "utimeSync",
  ],
  "a module cannot watch files": ["watchFs"],
};
const GLOBALS: Readonly<Record<string, readonly string[]>> = {
  [NET]: ["fetch", "WebSocket", "WebSocketStream", "EventSource", "WebTransport"],
  "a module runs on one thread": ["Worker"],
};

/**
 * Gives what stands in `Deno` for the functions that a module cannot use. `Deno.env` stays: built-in
 * modules of node look into it as they load, and without a permission it gives nothing.
 */
export function deniedInDeno(): Record<string, unknown> {
  return replaced("Deno.", WHY);
}

/** Gives what stands in the global scope for what a module cannot use. */
export function deniedGlobals(): Record<string, unknown> {
  const { fetch: _, ...others } = replaced("", GLOBALS);
  return { ...others, fetch: () => Promise.reject(words("fetch", NET)) };
}

function replaced(
  before: string,
  names: Readonly<Record<string, readonly string[]>>,
): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(names).flatMap(([why, list]) =>
      list.map((name) => [name, function () {
        return refuse(before + name, why);
      }])
    ),
  );
}

function refuse(name: string, why: string): never {
  throw words(name, why);
}

function words(name: string, why: string): Error {
  return denied(`Cannot use ${name}: ${why}`);
}

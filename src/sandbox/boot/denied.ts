/**
 * What a module cannot use, and the words that say what to use instead.
 *
 * @module
 */

import { denied } from "./asking.ts";

const NET = "local modules are network-isolated: use host.fetch, with a net grant";
const IN_DENO: Readonly<Record<string, string>> = {
  [NET]: "connect connectTls connectQuic listen listenTls listenDatagram resolveDns startTls " +
    "serve serveHttp createHttpClient QuicEndpoint upgradeWebTransport",
  "use host.exec, with a run grant": "Command Process run spawn spawnAndWait spawnAndWaitSync kill",
  "a module cannot make links": "link linkSync symlink symlinkSync",
  "a module cannot load native code":
    "dlopen UnsafeCallback UnsafeFnPointer UnsafePointer UnsafePointerView",
  "a module keeps its data in files of the workspace (host.sqlite)": "openKv",
  "paths are relative to the workspace, always": "chdir",
  "a module cannot change owners or what new files may be (pass a mode, or chmod)":
    "chown chownSync umask",
  "a call looks and ends: read the files again": "watchFs",
  "a call that has to stop says so (host.signal)": "addSignalListener removeSignalListener",
};
const GLOBALS: Readonly<Record<string, string>> = {
  [NET]: "fetch WebSocket WebSocketStream EventSource WebTransport",
  "a module runs on one thread": "Worker",
};

/**
 * Gives what stands in `Deno` for the functions that a module cannot use. `Deno.env` and what tells
 * of the machine stay: built-in modules of node look there, and without a permission they give nothing.
 */
export function deniedInDeno(): Record<string, unknown> {
  return refusals("Deno.", IN_DENO);
}

/** Gives what stands in the global scope for what a module cannot use. */
export function deniedGlobals(): Record<string, unknown> {
  const refused = refusals("", GLOBALS);
  return { ...refused, fetch: () => Promise.try(() => refused.fetch?.()) };
}

function refusals(
  before: string,
  names: Readonly<Record<string, string>>,
): Record<string, () => never> {
  const refused: Record<string, () => never> = {};
  for (const [why, list] of Object.entries(names)) {
    for (const name of list.split(" ")) {
      // No arrow function, because some of them are called with `new`.
      refused[name] = function () {
        throw denied(`Cannot use ${before}${name}: ${why}`);
      };
    }
  }
  return refused;
}

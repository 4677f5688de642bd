/**
 * Names that a module cannot use, and their alternatives. The child refuses these names, and
 * `pml check` warns about them.
 *
 * @module
 */

import type { Denied } from "./boot/message.ts";

/** The reason why the network functions of Deno are refused. */
export const NET = "local modules are network-isolated: use host.fetch, with a net grant";

/** Names that a module cannot use, by the reason. */
export const DENIED: Denied = {
  inDeno: {
    [NET]: "connect connectTls connectQuic listen listenTls listenDatagram resolveDns startTls " +
      "serve serveHttp createHttpClient QuicEndpoint upgradeWebTransport",
    "use host.exec, with a run grant":
      "Command Process run spawn spawnAndWait spawnAndWaitSync kill",
    "a module cannot make links": "link linkSync symlink symlinkSync",
    "a module cannot load native code":
      "dlopen UnsafeCallback UnsafeFnPointer UnsafePointer UnsafePointerView",
    "a module keeps its data in files of the workspace (host.sqlite)": "openKv",
    "paths are always relative to the workspace": "chdir",
    "a module cannot change owners or the umask (pass a mode, or use chmod)":
      "chown chownSync umask",
    "files cannot be watched: read them again": "watchFs",
    "use host.signal, which aborts when the call must stop":
      "addSignalListener removeSignalListener",
  },
  global: {
    [NET]: "fetch WebSocket WebSocketStream EventSource WebTransport",
    "a module runs on one thread": "Worker",
  },
};

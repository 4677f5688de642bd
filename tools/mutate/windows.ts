/**
 * The guards of windows, which attach to a running `pml serve`.
 *
 * @module
 */

import type { Mutant } from "./mutant.ts";

const TEST = "tests/windows_test.ts";

export const WINDOWS: readonly Mutant[] = [
  {
    name: "window-variables",
    guard: "A window whose variables differ does not attach",
    file: "src/cli/_windows.ts",
    find: "objectOf(values)[name] !== hashed(nonce, get(name))",
    put: "nonce !== nonce && name !== String(get(name)) + String(values)",
    test: TEST,
    filter: "A window with another environment, workspace or nobody to attach to works alone",
  },
  {
    name: "window-socket",
    guard: "A window attaches to no socket that others could have made",
    file: "src/serve/window_socket.ts",
    find: "if (!isOwn(path)) return undefined;",
    put: "isOwn(path);",
    test: TEST,
    filter: "A window with another environment, workspace or nobody to attach to works alone",
  },
  {
    name: "window-party",
    guard: "The answer to a question of one window does nothing in another",
    file: "src/gateway/gateway.ts",
    find: "party: party ?? this.#here,",
    put: "party: this.#here,",
    test: TEST,
    filter: "The answer to a question of one window does nothing in another",
  },
  {
    name: "window-named",
    guard: "A window whose variables were not all compared goes on alone",
    file: "src/cli/_windows.ts",
    find: "if (!names.every((name) => compared.has(name))) socket.destroy();",
    put: "if (names.length < compared.size) socket.pause();",
    test: TEST,
    filter: "A window goes on alone when the configuration names another variable",
  },
  {
    name: "window-drain",
    guard: "Calls of windows end before PML does",
    file: "src/cli/_serve.ts",
    find: "await Promise.all([door, link, windows].map(",
    put: "await Promise.all([door, link].map(",
    test: TEST,
    filter: "A PML that ends waits for the calls of its windows (2025-11-25)",
  },
  {
    name: "window-not-begun",
    guard: "What a PML that ends has not begun is asked of the window's own, once",
    file: "src/gateway/_work.ts",
    find: "await mcpReq.notify({ method: NOT_BEGUN, params: { requestId: mcpReq.id } });",
    put: "",
    test: TEST,
    filter: "A PML that ends waits for the calls of its windows (2026-07-28)",
  },
  {
    name: "window-unread",
    guard: "What windows do not read cannot fill the memory",
    file: "src/cli/_windows.ts",
    find: "if (this.#unread() > MOST_ANSWERS * queuedBytes) this.#shed();",
    put: "",
    test: TEST,
    filter: "A client of a window that reads late gets all; what is too much ends its window alone",
  },
];

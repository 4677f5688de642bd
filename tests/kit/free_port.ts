/**
 * Ports for servers of tests.
 *
 * @module
 */

/**
 * Returns a closed port of 127.0.0.1, below those that the system assigns, so that no other test
 * gets it while its server is stopped.
 */
export function freePort(): number {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 10_000);
    try {
      Deno.listen({ hostname: "127.0.0.1", port }).close();
      return port;
    } catch (error) {
      if (!(error instanceof Deno.errors.AddrInUse)) throw error;
    }
  }
}

const WAIT_MS = 10;
const TRIES_MAX = 300;

/**
 * Listens again at a port whose server was closed. Tries again for some seconds: a process that any
 * test is starting has all sockets for a moment, until its program replaces it.
 */
export function listenAgain<T>(listen: () => T): T {
  for (let tries = TRIES_MAX;; tries--) {
    try {
      return listen();
    } catch (error) {
      if (!(error instanceof Deno.errors.AddrInUse) || tries === 0) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, WAIT_MS);
    }
  }
}

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

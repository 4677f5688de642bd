/**
 * Sends bytes to an HTTP server unchanged, and reads the response.
 *
 * @module
 */

import { DEADLINE_MS } from "./wait.ts";

/** The response until the server closed the connection, or the time was over. */
export interface RawAnswer {
  readonly text: string;
  /** The status of the first response; 0 if there was none. */
  readonly status: number;
  /** Whether the server closed the connection. */
  readonly closed: boolean;
}

/** Sends texts one after the other on one connection. */
export async function rawHttp(
  port: number,
  texts: readonly (string | Uint8Array)[],
  { ms = DEADLINE_MS, until }: { readonly ms?: number; readonly until?: RegExp } = {},
): Promise<RawAnswer> {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port });
  const timer = setTimeout(() => connection.close(), ms);
  const decoder = new TextDecoder();
  let text = "";
  let closed = false;
  try {
    const writing = (async () => {
      for (const one of texts) {
        const bytes = typeof one === "string" ? new TextEncoder().encode(one) : one;
        for (let at = 0; at < bytes.length;) at += await connection.write(bytes.subarray(at));
      }
    })().catch(() => {}); // the server may have closed it
    const buffer = new Uint8Array(65_536);
    for (;;) {
      const read = await connection.read(buffer);
      if (read === null) closed = true;
      if (read !== null) text += decoder.decode(buffer.subarray(0, read), { stream: true });
      if (read === null || until?.test(text)) break;
    }
    await writing;
  } catch (error) {
    closed = error instanceof Deno.errors.ConnectionReset || closed;
  } finally {
    clearTimeout(timer);
    try {
      connection.close();
    } catch {
      // the timer closed it
    }
  }
  return { text, closed, status: Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0) };
}

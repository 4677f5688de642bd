/**
 * Delays each read of `Deno.stdin` by half a second, as on a machine with no time for the reading
 * thread. It is loaded before PML (`deno run --preload`).
 *
 * @module
 */

const LATE_MS = 500;

const reader = Deno.stdin.readable.getReader();
const readable = new ReadableStream<Uint8Array>({
  async pull(controller) {
    const { value, done } = await reader.read();
    await new Promise((resolve) => setTimeout(resolve, LATE_MS));
    if (done) controller.close();
    else controller.enqueue(value);
  },
  cancel: () => reader.cancel(),
}, { highWaterMark: 0 });
Object.defineProperty(Deno.stdin, "readable", { value: readable });

import assert from "node:assert/strict";
import { type Input, openStream } from "./_pipes.ts";

Deno.test("openStream() delivers all pieces and the end, and reads nothing while it is paused", async () => {
  let sent = 0;
  const stream = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (sent === 5) controller.close();
      else controller.enqueue(new Uint8Array([sent++]));
    },
  }, { highWaterMark: 0 });
  const taken: number[] = [];
  const input = openStream(stream, ([first = -1]) => {
    taken.push(first);
    if (first === 1) input.pause();
  });
  while (taken.length < 2) await new Promise((resolve) => setTimeout(resolve));
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.deepEqual([taken, sent], [[0, 1], 2]);
  input.resume();
  await input.whenEnded;
  assert.deepEqual(taken, [0, 1, 2, 3, 4]);
});

Deno.test("openStream() ends when it is closed, also while it is paused", async () => {
  const stream = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(new Uint8Array(1)),
  });
  const input = openStream(stream, () => input.pause());
  await new Promise((resolve) => setTimeout(resolve));
  await input.close();
  await input.whenEnded;
});

/** Returns a stream of one-byte pieces that counts how many were read. */
function counted(): { readonly stream: ReadableStream<Uint8Array>; readonly sent: () => number } {
  let sent = 0;
  const stream = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(new Uint8Array([sent++])),
  }, { highWaterMark: 0 });
  return { stream, sent: () => sent };
}

Deno.test("openStream() reads no further piece of the stream after another input replaces it", async () => {
  const { stream, sent } = counted();
  const steps: string[] = [];
  const over = Promise.withResolvers<void>();
  const other: Input = {
    whenEnded: over.promise,
    pause: () => void steps.push("pause"),
    resume: () => void steps.push("resume"),
    close: () => Promise.resolve(over.resolve()),
  };
  const taken: number[] = [];
  const input = openStream(
    stream,
    ([first = -1]) => void taken.push(first),
    () => taken.length === 3 ? other : undefined,
  );
  while (taken.length < 3) await new Promise((resolve) => setTimeout(resolve));
  await new Promise((resolve) => setTimeout(resolve, 20));
  input.pause();
  input.resume();
  await input.close();
  await input.whenEnded;
  assert.deepEqual([taken, sent(), steps], [[0, 1, 2], 3, ["pause", "resume", "resume"]]);
});

Deno.test("openStream() opens no other input after it was closed while paused", async () => {
  const { stream } = counted();
  const input = openStream(stream, () => input.pause(), () => assert.fail("it was opened"));
  await new Promise((resolve) => setTimeout(resolve));
  await input.close();
  await input.whenEnded;
});

Deno.test("openStream() pauses another input that replaces it if it is paused meanwhile", async () => {
  const { stream } = counted();
  const steps: string[] = [];
  const over = Promise.withResolvers<void>();
  const other: Input = {
    whenEnded: over.promise,
    pause: () => void steps.push("pause"),
    resume: () => void steps.push("resume"),
    close: () => Promise.resolve(over.resolve()),
  };
  const pauseSoon = () => queueMicrotask(() => input.pause());
  const input = openStream(stream, pauseSoon, () => other);
  await new Promise((resolve) => setTimeout(resolve));
  assert.deepEqual(steps, ["pause"]);
  await input.close();
  await input.whenEnded;
});

Deno.test("a long answer that waits for the client is written while sockets are loaded", async () => {
  const size = 300_000; // exceeds the capacity of a pipe
  const code = `
    import { standardPipes } from ${JSON.stringify(import.meta.resolve("./_pipes.ts"))};
    const { output, useSockets } = standardPipes();
    const writing = output.write(new Uint8Array(${size}));
    await useSockets();
    await Deno.stderr.write(new Uint8Array(1));
    await writing;
    await output.write(new Uint8Array(1));
    Deno.exit();
  `;
  const args = ["eval", "--no-check", code];
  const piped = { stdin: "null", stdout: "piped", stderr: "piped" } as const;
  await using child = new Deno.Command(Deno.execPath(), { args, ...piped }).spawn();
  const loaded = await child.stderr.getReader().read();
  assert.equal(loaded.value?.length, 1);
  const output = await new Response(child.stdout).bytes();
  assert.equal(output.length, size + 1);
});

Deno.test("a process that ends slowly is killed only if an answer is still unwritten", async () => {
  for (const isUnwritten of [true, false]) {
    const code = `
      import { LAST_WRITE_MS, standardPipes } from ${
      JSON.stringify(import.meta.resolve("./_pipes.ts"))
    };
      standardPipes().discardOutput(() => ${isUnwritten});
      setTimeout(() => {}, 2 * LAST_WRITE_MS);
    `;
    const args = ["eval", "--no-check", code];
    const { signal } = await new Deno.Command(Deno.execPath(), { args, stdin: "null" }).output();
    assert.equal(signal, isUnwritten ? "SIGTERM" : null);
  }
});

import assert from "node:assert/strict";
import { PipeThreads, type Start } from "./_pipe_threads.ts";

/** Echoes its input, prints the number of bytes at the end of input, and exits with code 7. */
const ECHO = `
  const bytes = new Uint8Array(65_536);
  let count = 0;
  for (let read; (read = Deno.stdin.readSync(bytes)) !== null; count += read) {
    Deno.stdout.writeSync(bytes.subarray(0, read));
  }
  Deno.stderr.writeSync(new TextEncoder().encode("read " + count));
  Deno.exit(7);
`;
const OPTIONS: Deno.CommandOptions = {
  args: ["eval", ECHO],
  stdin: "piped",
  stdout: "piped",
  stderr: "piped",
};

const start: Start = (file, options) => new Deno.Command(file, options).spawn();

/** The threads of a runtime on a machine with two processors. */
const TWO_PROCESSORS = 8;

/** Reads a stream as the sandbox does, with its own buffer. */
async function bytesOf(stream: ReadableStream<Uint8Array>): Promise<Uint8Array> {
  const reader = stream.getReader({ mode: "byob" });
  const parts: number[] = [];
  for (;;) {
    const { value } = await reader.read(new Uint8Array(65_536));
    if (value === undefined || value.length === 0) return new Uint8Array(parts);
    for (const byte of value) parts.push(byte);
  }
}

Deno.test("PipeThreads runs more programs than a runtime has threads", async () => {
  const threads = new PipeThreads(start, TWO_PROCESSORS);
  const bytes = new Uint8Array(300_000).fill(97);
  const children = Array.from({ length: 7 }, () => threads.spawn(Deno.execPath(), OPTIONS));
  assert.equal(new Set(children.map(({ pid }) => pid)).size, children.length);
  // All programs run, and all outputs have a reader, before the first program ends.
  const outputs = children.map(({ stdout }) => bytesOf(stdout));
  const errors = children.map(({ stderr }) => new Response(stderr).text());
  const inputs = children.map(({ stdin }) => stdin.getWriter());
  for (const input of inputs) await input.write(bytes);
  for (const input of inputs) await input.close();
  for (const [at, { status }] of children.entries()) {
    assert.deepEqual(await outputs[at], bytes);
    assert.equal(await errors[at], "read 300000");
    assert.equal((await status).code, 7);
  }
});

Deno.test("PipeThreads reuses the threads of a program that ended", async () => {
  const threads = new PipeThreads(start, TWO_PROCESSORS);
  for (let round = 0; round < 3; round++) {
    const children = [1, 2].map(() => threads.spawn(Deno.execPath(), OPTIONS));
    for (const { pid, stdin, stdout, stderr, status } of children) {
      const outputs = [stdout, stderr].map((stream) => new Response(stream).bytes());
      if (round === 1) Deno.kill(pid, "SIGKILL");
      else await stdin.close();
      const { code, success } = await status;
      assert.ok(round === 1 ? !success : code === 7);
      await Promise.all(outputs);
      if (round === 1) await stdin.abort().catch(() => {});
    }
  }
});

Deno.test("PipeThreads throws the error of the system in each thread", async () => {
  const threads = new PipeThreads(start, TWO_PROCESSORS);
  const missing = `${Deno.execPath()}-missing`;
  assert.throws(() => threads.spawn(missing, OPTIONS), Deno.errors.NotFound);
  const first = threads.spawn(Deno.execPath(), OPTIONS);
  // All threads of PML's runtime are in use, so a Worker starts this one.
  assert.throws(() => threads.spawn(missing, OPTIONS), Deno.errors.NotFound);
  await first.stdin.close();
  await Promise.all([first.stdout.cancel(), first.stderr.cancel(), first.status]);
});

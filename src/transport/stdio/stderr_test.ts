import assert from "node:assert/strict";
import { LateSink, Stderr } from "./stderr.ts";

/** A pipe whose other end reads only when the test allows it. */
class Pipe {
  text = "";
  writableLength = 0;
  readonly #done: (() => void)[] = [];

  write(text: unknown, done?: unknown): boolean {
    this.text += String(text);
    this.writableLength += String(text).length;
    if (typeof done === "function") this.#done.push(() => done());
    return true;
  }

  read(bytes = Infinity): void {
    this.writableLength = Math.max(this.writableLength - bytes, 0);
    if (this.writableLength === 0) this.#done.forEach((done) => done());
  }
}

Deno.test("Stderr drops lines when its buffer is full, counts them, and reports each gap once", async () => {
  const pipe = new Pipe();
  const stderr = new Stderr(pipe as never);
  const line = "x".repeat(99_999);
  for (let at = 0; at < 100; at++) stderr.write(line);
  assert.equal(pipe.text.length, 1_100_000, "as much as may wait, and the line that passed it");
  pipe.read(300_000);
  stderr.write("still too much waits");
  pipe.read(400_000);
  stderr.write("a");
  stderr.write("b");
  assert.match(pipe.text, /x\n90 lines .*\na\nb\n$/);
  setTimeout(() => pipe.read());
  await stderr[Symbol.asyncDispose]();
  assert.ok(pipe.text.endsWith("\nb\n"));
});

Deno.test("Stderr waits a short time at the end, and reports the last gap", async () => {
  const pipe = new Pipe();
  const stderr = new Stderr(pipe as never);
  for (let at = 0; at < 12; at++) stderr.write("y".repeat(100_000));
  const since = performance.now();
  await stderr[Symbol.asyncDispose]();
  assert.ok(performance.now() - since < 5_000);
  assert.match(pipe.text, /\n2 lines were dropped here/);
});

Deno.test("LateSink opens the sink with the first text, and at once for the last one", async () => {
  const pipe = new Pipe();
  let count = 0;
  const open = () => Promise.resolve((count++, pipe));
  const silent = new LateSink(open, 0);
  await new Promise<void>((resolve) => silent.write("", resolve));
  assert.equal(count, 0, "there was nothing to write");
  const sink = new LateSink(open, 60_000);
  sink.write("a\n");
  sink.write("b\n");
  assert.equal(sink.writableLength, 4);
  setTimeout(() => pipe.read(), 20);
  await new Promise<void>((resolve) => sink.write("", resolve));
  sink.write("c\n");
  assert.deepEqual([pipe.text, count], ["a\nb\nc\n", 1]);
});

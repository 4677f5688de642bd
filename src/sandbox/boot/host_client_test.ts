import assert from "node:assert/strict";
import { HostClient } from "./host_client.ts";
import type { WorkerStart } from "./message.ts";

/** A thread that notifies many times before it answers. */
const WAKER = `
  globalThis.onmessage = ({ data: { turn, answer } }) => {
    const numbers = new Int32Array(turn);
    for (let woken = 0; woken < 3;) woken += Atomics.notify(numbers, 0);
    const bytes = new TextEncoder().encode('{"ok":true,"value":"fresh"}');
    new Uint8Array(answer).set(bytes);
    numbers[1] = bytes.length;
    Atomics.store(numbers, 0, 1);
    Atomics.notify(numbers, 0);
  };`;

Deno.test("HostClient.requestSync() ignores a late notification of the last answer", () => {
  const turn = new SharedArrayBuffer(8);
  const answer = new SharedArrayBuffer(1 << 10);
  const stale = new TextEncoder().encode('{"ok":true,"value":"stale"}');
  new Uint8Array(answer).set(stale);
  new Int32Array(turn)[1] = stale.length;
  const url = URL.createObjectURL(new Blob([WAKER], { type: "application/javascript" }));
  const waker = new Worker(url, { type: "module" });
  const client = new HostClient({ turn, answer } as WorkerStart, () => {
    waker.postMessage({ turn, answer });
  });
  assert.equal(client.requestSync("readFile", ["a"]), "fresh");
  waker.terminate();
  URL.revokeObjectURL(url);
});

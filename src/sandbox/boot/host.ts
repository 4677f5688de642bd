/**
 * The host thread of a sandbox child: it holds the permissions, the nonce and the broker, and
 * believes nothing that the Worker says.
 *
 * @module
 */

import { Broker } from "./broker.ts";
import { afterLife } from "./life.ts";
import { FrameWriter, StdinLines } from "./lines.ts";
import { WorkspaceLock } from "./lock.ts";
import type { FromWorker, Reply, Start } from "./message.ts";
import { fileDoors, openDoors } from "./probe.ts";

const ANSWER_START = 1 << 16;
const SPARE = 1 << 20;
// What only this thread may say is not among them.
const FROM_WORKER = new Set([
  "tested",
  "ready",
  "unloaded",
  "result",
  "failed",
  "log",
  "progress",
]);

/** Starts the Worker and carries messages until stdin ends. */
export async function boot(): Promise<void> {
  const lines = new StdinLines();
  // Both lines are taken before a Worker exists that could read stdin too.
  const frames = new FrameWriter(await lines.next() ?? "");
  const start: Start = JSON.parse(await lines.next() ?? "{}");
  const worker = newWorker(start.worker, frames);
  const open = [...await openDoors([start.canary]), ...fileDoors()];
  if (open.length > 0) end(frames, "refused", `its host thread is open: ${open.join(", ")}`);
  const { port1, port2 } = new MessageChannel();
  const { turn, answer } = serve(port1, { start, frames });
  const { canary, lock, code, workspace, resultBytes } = start;
  // The lock file is open to this thread and must not be to the Worker.
  const closed = [canary, lock];
  worker.postMessage({ port: port2, closed, code, workspace, resultBytes, turn, answer }, [port2]);
  for (let line = await lines.next(); line !== undefined; line = await lines.next()) {
    port1.postMessage(JSON.parse(line));
  }
  // The gateway is gone.
  Deno.exit(0);
}

function end(frames: FrameWriter, type: string, why: string): never {
  frames.write(type, 0, JSON.stringify(why));
  Deno.exit(70);
}

function newWorker(code: string, frames: FrameWriter): Worker {
  const url = URL.createObjectURL(new Blob([code], { type: "application/javascript" }));
  const worker = new Worker(url, { type: "module", deno: { permissions: "none" } });
  worker.addEventListener("error", (event) => {
    event.preventDefault();
    end(frames, "crashed", event.message);
  });
  return worker;
}

/** Answers the Worker; gives the shared memory where it finds answers that it waits for. */
function serve(
  port: MessagePort,
  from: { readonly start: Start; readonly frames: FrameWriter },
): AnswerSlot {
  const { start, frames } = from;
  const broker = new Broker(start, new WorkspaceLock(start.lock));
  const slot = new AnswerSlot(start.resultBytes + SPARE);
  port.onmessage = ({ data: message }: MessageEvent<FromWorker>) => {
    if (message.kind === "frame") {
      if (!FROM_WORKER.has(message.type)) return;
      if (message.type === "tested") {
        afterLife(() => end(frames, "crashed", "the module ended its own thread"));
      }
      frames.write(message.type, Number(message.id), String(message.json));
    } else if (message.id === 0) slot.put(broker.answer(message.op, message.args));
    else {
      const reply = broker.answer(message.op, message.args);
      const moved = reply.ok && reply.bytes ? [reply.bytes.buffer] : [];
      port.postMessage({ kind: "reply", id: message.id, reply }, moved);
    }
  };
  return slot;
}

/** Hands answers to a Worker that waits in the middle of a synchronous call. */
class AnswerSlot {
  readonly turn = new SharedArrayBuffer(8);
  readonly answer: SharedArrayBuffer;
  readonly #turn = new Int32Array(this.turn);

  constructor(maxByteLength: number) {
    this.answer = new SharedArrayBuffer(ANSWER_START, { maxByteLength });
  }

  put(reply: Reply): void {
    const { bytes, ...rest } = reply as Reply & { bytes?: Uint8Array }; // either kind of reply
    const head = new TextEncoder().encode(JSON.stringify(rest));
    const length = head.length + (bytes?.length ?? 0);
    if (length > this.answer.byteLength) this.answer.grow(length);
    const into = new Uint8Array(this.answer);
    into.set(head);
    if (bytes) into.set(bytes, head.length);
    this.#turn[1] = bytes ? bytes.length : -1;
    Atomics.store(this.#turn, 0, head.length);
    Atomics.notify(this.#turn, 0);
  }
}

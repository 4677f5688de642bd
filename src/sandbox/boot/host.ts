/**
 * The host thread of a sandbox child: it holds the permissions, the nonce and the broker, and
 * believes nothing that the Worker says.
 *
 * @module
 */

import { Broker } from "./broker.ts";
import { afterLife } from "./life.ts";
import { frameWriter, stdinLines, type Write } from "./lines.ts";
import { WorkspaceLock } from "./lock.ts";
import type { FromWorker, Reply, Start } from "./message.ts";
import type { Power } from "./power.ts";
import { failureOf } from "./refusal.ts";
import { fileDoors, openDoors } from "./probe.ts";

const ANSWER_START = 1 << 16;
const SPARE = 1 << 20;
// What only this thread may say is not among them.
const FROM_WORKER = ["tested", "ready", "unloaded", "result", "failed", "log", "progress"];

/** Starts the Worker and carries messages until stdin ends. */
export async function boot(): Promise<void> {
  const lines = stdinLines();
  // The line is taken before a Worker exists that could read stdin too.
  const { value = "{}" } = await lines.next();
  const start: Start = JSON.parse(value);
  const { canary, lock, code, workspace, resultBytes } = start;
  const write = frameWriter(start.nonce);
  const worker = newWorker(start.worker, write);
  const open = [...await openDoors([canary]), ...fileDoors()];
  if (open.length > 0) end(write, "refused", `its host thread is open: ${open.join(", ")}`);
  const { port1, port2 } = new MessageChannel();
  const { turn, answer } = serve(port1, start, write);
  // The lock file is open to this thread and must not be to the Worker.
  const closed = [canary, lock];
  worker.postMessage({ port: port2, closed, code, workspace, resultBytes, turn, answer }, [port2]);
  for await (const line of lines) port1.postMessage(JSON.parse(line));
  // The gateway is gone.
  Deno.exit(0);
}

function end(write: Write, type: string, why: string): never {
  write(type, 0, JSON.stringify(why));
  Deno.exit(70);
}

function newWorker(code: string, write: Write): Worker {
  const url = URL.createObjectURL(new Blob([code], { type: "application/javascript" }));
  const worker = new Worker(url, { type: "module", deno: { permissions: "none" } });
  worker.addEventListener("error", (event) => {
    event.preventDefault();
    end(write, "crashed", event.message);
  });
  return worker;
}

/** Answers the Worker; gives the shared memory where it finds answers that it waits for. */
function serve(port: MessagePort, start: Start, write: Write): AnswerSlot {
  const broker = new Broker(start, new WorkspaceLock(start.lock));
  const slot = new AnswerSlot(start.resultBytes + SPARE);
  port.onmessage = ({ data: message }: MessageEvent<FromWorker>) => {
    if (message.kind === "file") {
      const { id, op, args } = message;
      const power = id !== 0 && Object.hasOwn(broker.powers, op) && broker.powers[op];
      if (power) {
        return void take(power, args).then((reply) =>
          port.postMessage({ kind: "reply", id, reply })
        );
      }
      const reply = broker.answer(op, args);
      if (id === 0) return slot.put(reply);
      const bytes = bytesIn(reply);
      return port.postMessage({ kind: "reply", id, reply }, bytes ? [bytes.buffer] : []);
    }
    const { type, id, json } = message;
    if (!FROM_WORKER.includes(type)) return;
    if (type === "tested") {
      afterLife(() => end(write, "crashed", "the module ended its own thread"));
    }
    write(type, Number(id), String(json));
  };
  return slot;
}

async function take(power: Power, args: unknown[]): Promise<Reply> {
  const { signal } = new AbortController();
  try {
    return { ok: true, value: await power(args, { signal, say() {} }) };
  } catch (error) {
    return { ok: false, error: failureOf(error, { op: "", asked: "" }) };
  }
}

function bytesIn(reply: Reply): Uint8Array<ArrayBuffer> | undefined {
  // The broker makes its own, never in shared memory.
  return reply.ok && reply.value instanceof Uint8Array
    ? reply.value as Uint8Array<ArrayBuffer>
    : undefined;
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
    const plain = bytesIn(reply);
    const bytes = plain ?? new TextEncoder().encode(JSON.stringify(reply));
    if (bytes.length > this.answer.byteLength) this.answer.grow(bytes.length);
    new Uint8Array(this.answer).set(bytes);
    this.#turn[1] = bytes.length;
    Atomics.store(this.#turn, 0, plain ? 2 : 1);
    Atomics.notify(this.#turn, 0);
  }
}

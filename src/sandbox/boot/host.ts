/**
 * The host thread of a sandbox child. It has the permissions, the nonce and the broker, and does
 * not trust the messages of the Worker.
 *
 * @module
 */

import { WorkerRequests } from "./answers.ts";
import { Broker } from "./broker.ts";
import { Databases } from "./databases.ts";
import { PathGuard } from "./path_guard.ts";
import { parseWithBigInts } from "./exact_values.ts";
import { confine } from "./landlock.ts";
import { runAfterEnd } from "./life.ts";
import { frameWriter, stdinLines, type WriteFrame } from "./lines.ts";
import { WorkspaceLock } from "./lock.ts";
import type { Answered, FromWorker, HostStart, ToWorker, WorkerStart } from "./message.ts";
import { Network } from "./network.ts";
import { plainScope } from "./names.ts";
import { allowedActions, unlimitedFiles } from "./probe.ts";
import { Programs } from "./programs.ts";
import { Wants } from "./wants.ts";

// The frames that the Worker may send. Only the host thread may send other frames.
const WORKER_FRAMES = [
  "tested",
  "ready",
  "unloaded",
  "result",
  "text",
  "failed",
  "log",
  "progress",
];

/** Runs the first message that a Worker gets. */
const BOOT_URL = "data:text/javascript,onmessage=({data})=>{onmessage=null;(0,eval)(data)}";

/** Starts the Worker and passes messages until stdin ends. */
export async function boot(): Promise<void> {
  const lines = stdinLines();
  // The first line is read before the Worker starts, because the Worker could read stdin, too.
  const { value = "{}" } = await lines.next();
  const start: HostStart = plainScope(JSON.parse(value));
  const { canary, lock, env, denied, workspace, resultBytes } = start;
  const write = frameWriter(start.nonce);
  write("confined", 0, JSON.stringify(confineChild(start, write)));
  const worker = newWorker(start.worker, write);
  const granted = { net: start.net.includes("*"), run: start.run === "*" };
  const problems = [...await allowedActions([canary], granted), ...unlimitedFiles()];
  if (problems.length > 0) {
    end(write, "refused", `the self-test of the host thread failed: ${problems.join(", ")}`);
  }
  const { port1, port2 } = new MessageChannel();
  const wants = new Wants(write);
  const { turn, answer } = serve(port1, start, { write, wants });
  // The host thread can read the lock file; the Worker must not.
  const workerStart: WorkerStart = {
    port: port2,
    closed: [canary, lock],
    env,
    denied,
    workspace,
    resultBytes,
    turn,
    answer,
  };
  worker.postMessage(workerStart, [port2]);
  for await (const line of lines) {
    const message: ToWorker | Answered = parseWithBigInts(line);
    if (message.kind === "answered") wants.settle(message);
    else port1.postMessage(message);
  }
  // PML has ended.
  Deno.exit(0);
}

function confineChild(start: HostStart, write: WriteFrame): string {
  const { system } = start;
  if (system === undefined) return "no landlock: it is off";
  try {
    return confine({ ...start, system, net: start.net.length > 0 });
  } catch (error) {
    return end(write, "refused", String(error));
  }
}

function end(write: WriteFrame, type: string, why: string): never {
  write(type, 0, JSON.stringify(why));
  Deno.exit(70);
}

/** Starts a Worker and sends its code as a message, because Deno would parse a module twice. */
function newWorker(code: string, write: WriteFrame): Worker {
  const worker = new Worker(BOOT_URL, { type: "module", deno: { permissions: "none" } });
  worker.addEventListener("error", (event) => {
    event.preventDefault();
    end(write, "crashed", event.message);
  });
  worker.postMessage(`"use strict";${code}`);
  return worker;
}

/** Answers the Worker's requests. Returns the shared memory for synchronous answers. */
function serve(
  port: MessagePort,
  start: HostStart,
  { write, wants }: { readonly write: WriteFrame; readonly wants: Wants },
): WorkerRequests["slot"] {
  const guard = new PathGuard(start);
  const lock = new WorkspaceLock(start.lock);
  const programs = new Programs(start, guard, (event, pid) => write(event, 0, `${pid}`));
  const files = new Broker(start, lock);
  const answers = new WorkerRequests(port, {
    resultBytes: start.resultBytes,
    files,
    ops: {
      ...programs.ops,
      ...wants.ops,
      ...new Network(start).ops,
      ...new Databases(guard, lock, { ...start, budget: files.budget }).ops,
    },
  });
  port.onmessage = ({ data: message }: MessageEvent<FromWorker>) => {
    if (message.kind !== "frame") return answers.take(message);
    const { type, id, json } = message;
    // guard: request-number
    if (!WORKER_FRAMES.includes(type)) return;
    if (type === "tested") {
      runAfterEnd(() => end(write, "crashed", "the module ended its own thread"));
    }
    write(type, Number(id), json);
  };
  return answers.slot;
}

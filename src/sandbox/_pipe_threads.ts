/**
 * Starts programs so that waiting for their output does not use up the threads of Deno's runtime.
 *
 * On Windows, reading from a child's pipe blocks a thread of the runtime until data arrives. A
 * runtime has four such threads for each processor. Once all are blocked, nothing can be read or
 * written: no file, no pipe, not even stdin. Each Worker has a separate runtime.
 *
 * @module
 */

import { programUrl } from "./deno_flags.ts";

/** The members of a running child that PML uses. */
export interface PipedProcess {
  readonly pid: number;
  readonly stdin: WritableStream<Uint8Array>;
  readonly stdout: ReadableStream<Uint8Array>;
  readonly stderr: ReadableStream<Uint8Array>;
  readonly status: Promise<Deno.CommandStatus>;
  /** Keeps PML from ending before the child does. */
  ref(): void;
  /** Lets PML end before the child does. */
  unref(): void;
}

/** Starts a program with three pipes. */
export type Start = (file: string, options: Deno.CommandOptions) => PipedProcess;

/** The pipes of a child. */
type ChildPipes = Pick<PipedProcess, "stdin" | "stdout" | "stderr">;

/** The program for a Worker to start, and the memory for its process id or an error. */
interface Order {
  readonly id: number;
  readonly file: string;
  readonly options: Deno.CommandOptions;
  readonly answer: SharedArrayBuffer;
}

/** A message of a Worker about a child: first its pipes, then its status. */
type WorkerMessage =
  & { readonly id: number }
  & ({ readonly pipes: ChildPipes } | { readonly status: Deno.CommandStatus });

/** The threads of a runtime that one program can block: for its stdin, stdout and stderr. */
const THREADS_EACH = 3;
/** The threads that PML needs for its own stdin and for files. */
const THREADS_OF_PML = 4;
/** The size of the memory for an answer: two numbers, and the text of an error. */
const ANSWER_BYTES = 2_048;
const TEXT_AT = 8;

/** Runs in the Worker. */
const CODE = programUrl(`onmessage = async ({ data: { id, file, options, answer } }) => {
  const numbers = new Int32Array(answer, 0, 2);
  let child;
  try {
    child = new Deno.Command(file, options).spawn();
    numbers[1] = child.pid;
  } catch (error) {
    const text = new TextEncoder().encode(JSON.stringify([error.name, error.message.slice(0, 400)]));
    new Uint8Array(answer, ${TEXT_AT}).set(text);
    numbers[1] = -text.length;
  }
  Atomics.store(numbers, 0, 1);
  Atomics.notify(numbers, 0);
  if (child === undefined) return;
  const { stdin, stdout, stderr } = child;
  postMessage({ id, pipes: { stdin, stdout, stderr } }, [stdin, stdout, stderr]);
  postMessage({ id, status: await child.status });
};`);

/**
 * Starts programs with three pipes. Starts a new Worker if the threads of a runtime are used up.
 */
export class PipeThreads {
  readonly #start: Start;
  /** The maximum numbers of programs that PML's own runtime and each Worker start at once. */
  readonly #ownMax: number;
  readonly #workerMax: number;
  readonly #workers = new Set<PipeWorker>();
  #running = 0;

  /**
   * Creates an instance. `start` starts a program in this thread; `threads` is the number of
   * threads of each runtime.
   */
  constructor(start: Start, threads: number = 4 * navigator.hardwareConcurrency) {
    this.#start = start;
    this.#ownMax = Math.max(0, Math.floor((threads - THREADS_OF_PML) / THREADS_EACH));
    this.#workerMax = Math.max(1, Math.floor((threads - 1) / THREADS_EACH));
  }

  /** Starts a program. Throws the error of the system if that fails. */
  readonly spawn: Start = (file, options) => {
    if (this.#running >= this.#ownMax) return this.#worker().spawn(file, options);
    const child = this.#start(file, options);
    this.#running++;
    child.status.finally(() => this.#running--);
    return child;
  };

  #worker(): PipeWorker {
    const free = [...this.#workers].find(({ running }) => running < this.#workerMax);
    if (free !== undefined) return free;
    const worker: PipeWorker = new PipeWorker(() => this.#workers.delete(worker));
    this.#workers.add(worker);
    return worker;
  }
}

/** One Worker and its programs. It ends when its last program has ended. */
class PipeWorker {
  readonly #worker = new Worker(CODE, { type: "module" });
  readonly #children = new Map<number, {
    readonly pipes: PromiseWithResolvers<ChildPipes>;
    readonly status: PromiseWithResolvers<Deno.CommandStatus>;
  }>();
  readonly #onEnd: () => void;
  #last = 0;

  constructor(onEnd: () => void) {
    this.#onEnd = onEnd;
    this.#worker.onmessage = ({ data }: MessageEvent<WorkerMessage>) => this.#take(data);
  }

  /** The number of its programs that have not ended. */
  get running(): number {
    return this.#children.size;
  }

  spawn(file: string, options: Deno.CommandOptions): PipedProcess {
    const id = ++this.#last;
    const answer = new SharedArrayBuffer(ANSWER_BYTES);
    const pipes = Promise.withResolvers<ChildPipes>();
    const status = Promise.withResolvers<Deno.CommandStatus>();
    this.#children.set(id, { pipes, status });
    this.#worker.postMessage({ id, file, options, answer } satisfies Order);
    const pid = pidIn(answer);
    if (pid instanceof Error) {
      this.#end(id);
      throw pid;
    }
    const { outputs, ...streams } = laterPipes(pipes.promise);
    // The Worker must pass on the rest of the output after the program has ended.
    Promise.all([status.promise, outputs]).then(() => this.#end(id));
    // A Worker never waits for PML, and the command line ends PML without waiting for Workers.
    const [ref, unref] = [() => {}, () => {}];
    return { pid, ...streams, status: status.promise, ref, unref };
  }

  #take(news: WorkerMessage): void {
    const child = this.#children.get(news.id);
    if ("pipes" in news) child?.pipes.resolve(news.pipes);
    else child?.status.resolve(news.status);
  }

  #end(id: number): void {
    this.#children.delete(id);
    if (this.#children.size > 0) return;
    this.#onEnd();
    this.#worker.terminate();
  }
}

/** Waits until a Worker has started a program. Returns its process id, or the error. */
function pidIn(answer: SharedArrayBuffer): number | Error {
  const numbers = new Int32Array(answer, 0, 2);
  Atomics.wait(numbers, 0, 0);
  const [, pid = 0] = numbers;
  if (pid >= 0) return pid;
  const text = new TextDecoder().decode(new Uint8Array(answer, TEXT_AT, -pid).slice());
  const [name, message]: [string, string] = JSON.parse(text);
  const kinds: Readonly<Record<string, new (message: string) => Error>> = { ...Deno.errors };
  return new (kinds[name] ?? Error)(message);
}

/**
 * Returns pipes at once, and a promise for the end of both outputs. They are connected to the pipes
 * of the program as soon as these exist.
 */
function laterPipes(
  pipes: Promise<ChildPipes>,
): ChildPipes & { readonly outputs: Promise<unknown> } {
  const input = new TransformStream<Uint8Array>();
  // A broken pipe is reported by the end of the program.
  pipes.then(({ stdin }) => input.readable.pipeTo(stdin)).catch(() => {});
  const [stdout, outputEnd] = laterOutput(pipes.then(({ stdout }) => stdout));
  const [stderr, errorsEnd] = laterOutput(pipes.then(({ stderr }) => stderr));
  return { stdin: input.writable, stdout, stderr, outputs: Promise.all([outputEnd, errorsEnd]) };
}

/** Returns a byte stream that reads from a stream that exists later, and a promise for its end. */
function laterOutput(
  source: Promise<ReadableStream<Uint8Array>>,
): [ReadableStream<Uint8Array>, Promise<void>] {
  const reader = source.then((stream) => stream.getReader());
  const output = new ReadableStream({
    type: "bytes",
    async pull(controller) {
      const { value } = await (await reader).read();
      if (value !== undefined) return controller.enqueue(value);
      controller.close();
      controller.byobRequest?.respond(0);
    },
    cancel: async (reason) => await (await reader).cancel(reason),
  });
  // The reader closes after everything was read; a broken pipe also counts as the end.
  const end = reader.then(({ closed }) => closed).catch(() => {});
  return [output, end];
}

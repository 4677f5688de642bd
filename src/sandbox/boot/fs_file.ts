/**
 * Creates functions that send requests to the broker, and `Deno.FsFile` from them.
 *
 * @module
 */

import type { HostClient } from "./host_client.ts";

const STREAM_PIECE = 1 << 16;
const LOCK_WAIT_MS = 50;

// deno-lint-ignore no-explicit-any -- a module passes any value and gets the result of Deno
export type Any = any;

/** Requests by the names of the functions that send them. */
export type FunctionTable = Readonly<Record<string, BrokeredFunction>>;

/** A function that sends a request. */
interface BrokeredFunction {
  /** The name of the request, if it differs from the function's. */
  readonly op?: string;
  /** Returns the arguments of the request; by default the module's arguments. */
  readonly send?: (...args: Any[]) => unknown[];
  /**
   * Returns the result for the answer and the module's arguments; by default the answer.
   */
  readonly give?: (value: Any, args: Any[]) => unknown;
}

/** Returns each function of a table, and its synchronous version. */
export function brokerFunctions(client: HostClient, table: FunctionTable): Record<string, Any> {
  const functions: Record<string, Any> = {};
  for (const [name, { op = name, send, give = same }] of Object.entries(table)) {
    const sending = (args: Any[]) => {
      for (const one of args) one?.signal?.throwIfAborted();
      return send?.(...args) ?? args;
    };
    functions[name] = async (...args: Any[]) => {
      const value = await client.request(op, sending(args));
      for (const one of args) one?.signal?.throwIfAborted();
      return give(value, args);
    };
    functions[`${name}Sync`] = (...args: Any[]) =>
      give(client.requestSync(op, sending(args)), args);
  }
  return functions;
}

function same(value: unknown): unknown {
  return value;
}

const STEPS: FunctionTable = {
  read: {
    op: "file.read",
    send: (number, into) => {
      if (into instanceof Uint8Array) return [number, into.length];
      throw new TypeError("expected a Uint8Array to read into");
    },
    give: (bytes, [, into]) => {
      if (bytes) into.set(bytes);
      return bytes && bytes.length;
    },
  },
  write: { op: "file.write", send: (number, bytes) => [number, compact(bytes)] },
  seek: { op: "file.seek" },
  stat: { op: "file.stat", give: infoOf },
  truncate: { op: "file.truncate" },
  sync: { op: "file.sync" },
  syncData: { op: "file.syncData" },
  utime: { op: "file.utime" },
  tryLock: { op: "file.tryLock" },
  unlock: { op: "file.unlock" },
};

/** Returns `Deno.FsFile`, and a function that creates an instance from the broker's file number. */
export function fileClass(client: HostClient): { FsFile: Any; opened: (number: number) => Any } {
  const key = Symbol();
  const steps = brokerFunctions(client, STEPS);

  class FsFile {
    static readonly name = "FsFile";
    readonly [step: string]: Any;
    readonly #number: number;
    #readable: ReadableStream<Uint8Array> | undefined;
    #writable: WritableStream<Uint8Array> | undefined;

    static {
      for (const [name, step] of Object.entries(steps)) {
        const value = function (this: FsFile, ...args: Any[]) {
          return step(this.#number, ...args);
        };
        Object.defineProperty(this.prototype, name, { value, writable: true, configurable: true });
      }
    }

    constructor(number: number, by?: symbol) {
      this.#number = number;
      if (by !== key) throw constructorError();
    }

    isTerminal(): boolean {
      return false;
    }

    setRaw(): never {
      this.statSync(); // throws if the file is closed
      throw new Deno.errors.BadResource("ENOTTY: Not a typewriter");
    }

    lock(exclusive = false): Promise<void> {
      return untilLocked(() => this.tryLock(exclusive));
    }

    lockSync(exclusive = false): void {
      blockUntil(() => this.tryLockSync(exclusive));
    }

    close(): void {
      client.requestSync("file.close", [this.#number]);
    }

    [Symbol.dispose](): void {
      quietly(() => this.close());
    }

    get readable(): ReadableStream<Uint8Array> {
      return this.#readable ??= readableOf(this);
    }

    get writable(): WritableStream<Uint8Array> {
      return this.#writable ??= writableOf(this);
    }
  }
  return { FsFile, opened: (number) => new FsFile(number, key) };
}

function constructorError(): TypeError {
  const use = "use 'Deno.open()' or 'Deno.openSync()' instead";
  return new TypeError(`'Deno.FsFile' cannot be constructed, ${use}`);
}

// Tries again and again, because the host thread has other requests and must not block on a lock.
async function untilLocked(tries: () => Promise<boolean>): Promise<void> {
  for (let ms = 1; !await tries(); ms = nextWaitMs(ms)) {
    await new Promise((done) => setTimeout(done, ms));
  }
}

function blockUntil(tries: () => boolean): void {
  const never = new Int32Array(new SharedArrayBuffer(4));
  for (let ms = 1; !tries(); ms = nextWaitMs(ms)) Atomics.wait(never, 0, 0, ms);
}

function nextWaitMs(ms: number): number {
  return Math.min(2 * ms, LOCK_WAIT_MS);
}

function quietly(close: () => void): void {
  try {
    close();
  } catch {
    // It is already closed.
  }
}

function readableOf(file: Any): ReadableStream<Uint8Array> {
  return new ReadableStream({
    type: "bytes",
    autoAllocateChunkSize: STREAM_PIECE,
    pull: async (controller) => {
      const request = controller.byobRequest; // exists because of `autoAllocateChunkSize`
      const length: number | null = await file.read(request?.view);
      if (length === null) {
        controller.close();
        file[Symbol.dispose]();
      }
      request?.respond(length ?? 0);
    },
    cancel: () => file[Symbol.dispose](),
  });
}

function writableOf(file: Any): WritableStream<Uint8Array> {
  return new WritableStream<Uint8Array>({
    write: async (chunk) => {
      for (let at = 0; at < chunk.length;) at += await file.write(chunk.subarray(at));
    },
    close: () => file[Symbol.dispose](),
    abort: () => file[Symbol.dispose](),
  });
}

/** Returns bytes with their own buffer, because a view would send the whole buffer. */
export function compact(bytes: unknown): Uint8Array {
  if (!(bytes instanceof Uint8Array)) throw new TypeError("expected a Uint8Array to write");
  return bytes.length < bytes.buffer.byteLength ? bytes.slice() : bytes;
}

/** Returns the result of `Deno.stat`. Its times may have been sent as text. */
export function infoOf(value: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [
      key,
      typeof one === "string" ? new Date(one) : one,
    ]),
  );
}

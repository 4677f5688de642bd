/**
 * `Deno.FsFile` over the broker.
 *
 * @module
 */

import { type Answer, type Asking, infoOf } from "./asking.ts";

const STREAM_PIECE = 1 << 16;

/** An open file whose every step is done by the host thread. */
export class BrokeredFile {
  readonly #asking: Asking;
  readonly #number: number;
  #readable: ReadableStream<Uint8Array> | undefined;
  #writable: WritableStream<Uint8Array> | undefined;
  #open = true;

  /** Wraps the number that the broker gave. */
  constructor(asking: Asking, number: number) {
    this.#asking = asking;
    this.#number = number;
  }

  /** Reads into a buffer; gives how much, or null at the end. */
  async read(into: Uint8Array): Promise<number | null> {
    return filled(into, await this.#later("read", into.length));
  }

  /** Reads as `read` does. */
  readSync(into: Uint8Array): number | null {
    return filled(into, this.#now("read", into.length));
  }

  /** Writes bytes; gives how many. */
  async write(bytes: Uint8Array): Promise<number> {
    return Number((await this.#later("write", bytes)).value);
  }

  /** Writes as `write` does. */
  writeSync(bytes: Uint8Array): number {
    return Number(this.#now("write", bytes).value);
  }

  /** Moves to a place; gives the new one. */
  async seek(offset: number | bigint, whence: Deno.SeekMode): Promise<number> {
    return Number((await this.#later("seek", offset, whence)).value);
  }

  /** Moves as `seek` does. */
  seekSync(offset: number | bigint, whence: Deno.SeekMode): number {
    return Number(this.#now("seek", offset, whence).value);
  }

  /** Tells size, times and kind. */
  async stat(): Promise<Record<string, unknown>> {
    return infoOf(await this.#later("stat"));
  }

  /** Tells as `stat` does. */
  statSync(): Record<string, unknown> {
    return infoOf(this.#now("stat"));
  }

  /** Cuts or stretches the file. */
  async truncate(length = 0): Promise<void> {
    await this.#later("truncate", length);
  }

  /** Cuts as `truncate` does. */
  truncateSync(length = 0): void {
    this.#now("truncate", length);
  }

  /** Waits until what was written is on the disk. */
  async sync(): Promise<void> {
    await this.#later("sync");
  }

  /** Waits as `sync` does. */
  syncSync(): void {
    this.#now("sync");
  }

  /** Waits as `sync` does; times are written too. */
  syncData(): Promise<void> {
    return this.sync();
  }

  /** Waits as `sync` does; times are written too. */
  syncDataSync(): void {
    this.syncSync();
  }

  /** Tells that this is no terminal. */
  isTerminal(): boolean {
    return false;
  }

  /** Closes the file. */
  close(): void {
    this.#open = false;
    this.#now("close");
  }

  /** Closes the file at the end of a block. */
  [Symbol.dispose](): void {
    if (this.#open) this.close();
  }

  /** The content as a stream, which closes the file at its end. */
  get readable(): ReadableStream<Uint8Array> {
    return this.#readable ??= new ReadableStream<Uint8Array>({
      pull: async (controller) => {
        const { value, bytes } = await this.#later("read", STREAM_PIECE);
        if (value === null) {
          controller.close();
          this[Symbol.dispose]();
        } else controller.enqueue(bytes ?? new Uint8Array());
      },
      cancel: () => this[Symbol.dispose](),
    });
  }

  /** The file as a place to write a stream to, which closes the file at its end. */
  get writable(): WritableStream<Uint8Array> {
    return this.#writable ??= new WritableStream<Uint8Array>({
      write: async (chunk) => {
        for (let at = 0; at < chunk.length;) at += await this.write(chunk.subarray(at));
      },
      close: () => this[Symbol.dispose](),
      abort: () => this[Symbol.dispose](),
    });
  }

  #later(step: string, ...args: unknown[]): Promise<Answer> {
    return this.#asking.later(`file.${step}`, [this.#number, ...args]);
  }

  #now(step: string, ...args: unknown[]): Answer {
    return this.#asking.now(`file.${step}`, [this.#number, ...args]);
  }
}

function filled(into: Uint8Array, { value, bytes }: Answer): number | null {
  if (bytes) into.set(bytes.subarray(0, into.length));
  return value === null ? null : Number(value);
}

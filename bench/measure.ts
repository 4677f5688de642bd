/**
 * What every benchmark shares: medians, spawning `pml`, one row of the table.
 *
 * @module
 */

/** The first id of requests that are sent at once. */
const BASE = 1_000_000;

/** One line of the table: a figure, its baseline in the same run, and the budget. */
export interface Row {
  readonly what: string;
  readonly value: number;
  readonly unit: string;
  /** The baseline's figure, where the budget is a ratio or a difference. */
  readonly baseline?: number;
  readonly budget: string;
  readonly ok: boolean;
  /** How many runs the medians are of. */
  readonly runs: number;
}

/** The middle of some figures. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? NaN) + upper) / 2;
}

/** The path of a file of this repository. */
export function pathOf(relative: string): string {
  return new URL(`../${relative}`, import.meta.url).pathname;
}

/** A server on stdio that was just spawned, and how to talk to it line by line. */
export class Spawned implements AsyncDisposable {
  readonly #child: Deno.ChildProcess;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  #rest = "";

  /** Starts `deno run -A SCRIPT ARGS` in a folder of its own. */
  constructor(script: string, options: {
    readonly args: readonly string[];
    readonly cwd: string;
    readonly home: string;
    /** What is asked for servers; nobody unless it is told. */
    readonly registries?: string;
  }) {
    this.#child = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--config", pathOf("deno.json"), script, ...options.args],
      cwd: options.cwd,
      env: {
        PML_HOME: options.home,
        PML_LOG_LEVEL: "error",
        PML_REGISTRIES: options.registries ?? "none",
        PML_TRUST: options.cwd,
      },
      stdin: "piped",
      stdout: "piped",
      stderr: "null",
    }).spawn();
    this.#writer = this.#child.stdin.getWriter();
    this.#reader = this.#child.stdout.getReader();
  }

  /** Its process. */
  get pid(): number {
    return this.#child.pid;
  }

  /** Sends a message without waiting. */
  async send(message: unknown): Promise<void> {
    await this.#writer.write(new TextEncoder().encode(`${JSON.stringify(message)}\n`));
  }

  /** Sends a request and waits for the answer with its id. */
  async request(id: number, method: string, params: unknown): Promise<unknown> {
    await this.send({ jsonrpc: "2.0", id, method, params });
    for (;;) {
      const message = JSON.parse(await this.#line());
      if (message.id === id && !("method" in message)) return message.result ?? message.error;
    }
  }

  /** Sends requests at once, and waits for the answers of all. */
  async requests(method: string, params: readonly unknown[]): Promise<void> {
    const waiting = new Set(params.map((_, at) => BASE + at));
    for (const [at, one] of params.entries()) {
      await this.send({ jsonrpc: "2.0", id: BASE + at, method, params: one });
    }
    while (waiting.size > 0) waiting.delete(JSON.parse(await this.#line()).id);
  }

  /** Opens the connection as a client of 2025-11-25 does. */
  async initialize(): Promise<void> {
    await this.request(0, "initialize", {
      protocolVersion: "2025-11-25",
      capabilities: {},
      clientInfo: { name: "bench", version: "1" },
    });
    await this.send({ jsonrpc: "2.0", method: "notifications/initialized" });
  }

  /** Hangs up and waits for its end. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#writer.close().catch(() => {});
    await this.#child.status;
    await this.#reader.cancel().catch(() => {});
  }

  async #line(): Promise<string> {
    for (;;) {
      const end = this.#rest.indexOf("\n");
      if (end >= 0) {
        const line = this.#rest.slice(0, end);
        this.#rest = this.#rest.slice(end + 1);
        return line;
      }
      const { done, value } = await this.#reader.read();
      if (done) throw new Error("The server hung up");
      this.#rest += new TextDecoder().decode(value);
    }
  }
}

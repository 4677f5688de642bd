/**
 * Shared by all benchmarks: medians, a spawned `pml`, and a row of the table.
 *
 * @module
 */

/** The budget of a figure. */
export interface Budget {
  /** The compared value: the figure, its ratio to the baseline, or its difference to the baseline. */
  readonly of: "figure" | "ratio" | "difference";
  readonly most?: number;
  readonly least?: number;
}

/** One line of the table: a figure, and its baseline in the same run. */
export interface Row {
  readonly what: string;
  readonly value: number;
  readonly unit: string;
  /** The figure of the baseline, for a ratio or a difference. */
  readonly baseline?: number;
  /** The budget; undefined if the figure is only reported. */
  readonly wanted?: Budget;
  /** The number of runs for the medians. */
  readonly runs: number;
}

/** The comparison of a figure with its budget; "close": missed by at most a quarter. */
export type Verdict = "kept" | "close" | "missed" | "-";

/** The maximum ratio of a figure to its budget for "close". */
const CLOSE_FACTOR = 1.25;

/** Compares a row with its budget. */
export function verdictOf({ value, baseline = NaN, wanted }: Row): Verdict {
  if (wanted === undefined) return "-";
  const { of, most = Infinity, least = -Infinity } = wanted;
  const figure = of === "figure" ? value : of === "ratio" ? value / baseline : value - baseline;
  if (figure <= most && figure >= least) return "kept";
  return figure <= most * CLOSE_FACTOR && figure >= least / CLOSE_FACTOR ? "close" : "missed";
}

/** Returns the median of values. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? NaN) + upper) / 2;
}

/** Returns the absolute path of a file in this repository. */
export function pathOf(relative: string): string {
  return new URL(`../${relative}`, import.meta.url).pathname;
}

/** Options of `StdioProcess`. */
export interface SpawnOptions {
  readonly args: readonly string[];
  readonly cwd: string;
  readonly home: string;
  /** The registries; none by default. */
  readonly registries?: string;
}

/** A spawned server on stdio, which exchanges messages as lines. */
export class StdioProcess implements AsyncDisposable {
  readonly #child: Deno.ChildProcess;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #waiting = new Map<number, (message: Answer) => void>();
  readonly #outputEnd: Promise<void>;
  #unsent = "";

  /** Starts `deno run -A SCRIPT ARGS` in a separate folder. */
  constructor(script: string, { args, cwd, home, registries = "none" }: SpawnOptions) {
    this.#child = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--config", pathOf("deno.json"), script, ...args],
      cwd,
      env: {
        PML_HOME: home,
        PML_LOG_LEVEL: "error",
        PML_REGISTRIES: registries,
        PML_TRUST: cwd,
      },
      stdin: "piped",
      stdout: "piped",
      stderr: "null",
    }).spawn();
    this.#writer = this.#child.stdin.getWriter();
    this.#outputEnd = this.#read();
  }

  /** The id of the process. */
  get pid(): number {
    return this.#child.pid;
  }

  /** The resident memory of the process in megabytes. */
  get rssMb(): number {
    const status = Deno.readTextFileSync(`/proc/${this.pid}/status`);
    return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
  }

  /** Sends a message without waiting. Messages of one turn of the event loop are written together. */
  send(message: unknown): void {
    if (this.#unsent === "") queueMicrotask(() => this.#flush());
    this.#unsent += `${JSON.stringify(message)}\n`;
  }

  /** Sends a request and waits for the answer with its id. */
  async request(id: number, method: string, params: unknown): Promise<unknown> {
    const answer = new Promise<Answer>((resolve) => this.#waiting.set(id, resolve));
    this.send({ jsonrpc: "2.0", id, method, params });
    const { result, error } = await answer;
    return result ?? error;
  }

  /** Opens the connection as a client of 2025-11-25 does. */
  async initialize(): Promise<void> {
    await this.request(0, "initialize", {
      protocolVersion: "2025-11-25",
      capabilities: {},
      clientInfo: { name: "bench", version: "1" },
    });
    this.send({ jsonrpc: "2.0", method: "notifications/initialized" });
  }

  /** Closes stdin and waits for the end of the process. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#writer.close().catch(() => {});
    await this.#child.status;
    await this.#outputEnd;
  }

  #flush(): void {
    // If the process has ended, `#read()` fails all waiting requests.
    this.#writer.write(new TextEncoder().encode(this.#unsent)).catch(() => {});
    this.#unsent = "";
  }

  async #read(): Promise<void> {
    const decoder = new TextDecoder();
    let rest = "";
    for await (const piece of this.#child.stdout) {
      const lines = (rest + decoder.decode(piece, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) this.#receive(JSON.parse(line));
    }
    for (const answer of this.#waiting.values()) answer({ id: 0, error: "The server has ended" });
  }

  #receive(message: Answer): void {
    if ("method" in message) return;
    this.#waiting.get(message.id)?.(message);
    this.#waiting.delete(message.id);
  }
}

interface Answer {
  readonly id: number;
  readonly result?: unknown;
  readonly error?: unknown;
}

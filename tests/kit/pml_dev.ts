/**
 * Runs `pml dev --json`, types lines into it, and waits for its events.
 *
 * @module
 */

import assert from "node:assert/strict";
import { rename } from "node:fs/promises";
import { IN_PROCESS, pidOf, type Running, startInProcess } from "./in_process.ts";
import { pmlCommand } from "./pml_command.ts";
import { until, within } from "./wait.ts";
import { type Workspace, writeFiles } from "./workspace.ts";

/** An event as `--json` prints it. */
export interface DevEvent {
  readonly event: string;
  readonly [key: string]: unknown;
}

/** Returns a module with these tools, whose functions have these bodies. */
export function module(tools: Readonly<Record<string, string>>, more = ""): string {
  const described = Object.keys(tools).map((name) => `${name}: { description: "${name}" }`);
  const functions = Object.entries(tools).map(([name, body]) =>
    `export async function ${name}(args: Record<string, unknown>, host: any) {\n  ${body}\n}\n`
  );
  return `export const __meta__ = {\n  name: "weather", description: "Weather",${more}\n` +
    `  tools: { ${described.join(", ")} },\n};\n${functions.join("")}`;
}

/** Saves the module in one step, like editors that write another file and rename it. */
export async function save(ws: Workspace, text: string): Promise<void> {
  await writeFiles(ws.path, { "weather.ts~": text });
  await rename(ws.file("weather.ts~"), ws.file("weather.ts"));
}

/** The options of `pml dev`. */
export interface DevOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Whether PML runs as a separate process: for tests of its end. */
  readonly ownProcess?: boolean;
}

/** A running `pml dev --json`. Its disposal ends it. */
export class Dev implements AsyncDisposable {
  /** Its events so far. */
  readonly events: DevEvent[] = [];
  /** Its stderr so far. */
  stderr = "";
  readonly #child: Running;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #reading: Promise<unknown>;
  #seen = 0;

  /** Starts `pml dev` for `weather.ts` of the workspace. */
  constructor(
    ws: Workspace,
    args: readonly string[] = ["--no-types"],
    { env = {}, ownProcess = !IN_PROCESS }: DevOptions = {},
  ) {
    const place = { cwd: ws.path, env: { ...ws.env, ...env } };
    const words = ["dev", "--json", ...args, "weather.ts"];
    this.#child = ownProcess ? spawned(words, place) : startInProcess({ args: words, ...place });
    this.#writer = this.#child.stdin.getWriter();
    this.#reading = Promise.all([this.#readEvents(), this.#readErrors()]);
  }

  /** The id of the process. */
  get pid(): number {
    return pidOf(this.#child);
  }

  /** Types a line. */
  async type(line: string): Promise<void> {
    await this.#writer.write(new TextEncoder().encode(`${line}\n`));
  }

  /** Waits for the next event of this name, after those that were returned before. */
  async next(name: string, is: (event: DevEvent) => boolean = () => true): Promise<DevEvent> {
    const fits = (event: DevEvent) => event.event === name && is(event);
    await until(() => this.events.slice(this.#seen).some(fits)).catch(() => {
      assert.fail(`no ${name} in ${JSON.stringify(this.events.slice(this.#seen))} ${this.stderr}`);
    });
    const at = this.events.findIndex((event, at) => at >= this.#seen && fits(event));
    this.#seen = at + 1;
    return this.events[at] ?? assert.fail();
  }

  /** Ends its input, and returns its exit code. */
  async end(): Promise<number> {
    await this.#writer.close();
    return await this.ended();
  }

  /** Returns the exit code when it has ended. */
  async ended(): Promise<number> {
    const what = () => `pml dev does not end: ${JSON.stringify(this.events)} ${this.stderr}`;
    const { code } = await within(this.#child.status, { what });
    await this.#reading;
    return code;
  }

  /** Sends a signal. */
  kill(signal: Deno.Signal): void {
    this.#child.kill(signal);
  }

  /** Ends it. */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      this.#child.kill(this.#child.pid === undefined ? "SIGTERM" : "SIGKILL");
    } catch {
      // it has ended
    }
    await this.#writer.close().catch(() => {});
    await this.#reading;
  }

  async #readEvents(): Promise<void> {
    let rest = "";
    for await (const text of this.#child.stdout.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) this.events.push(JSON.parse(line));
    }
  }

  async #readErrors(): Promise<void> {
    for await (const text of this.#child.stderr.pipeThrough(new TextDecoderStream())) {
      this.stderr += text;
    }
  }
}

function spawned(
  words: readonly string[],
  place: { readonly cwd: string; readonly env: Readonly<Record<string, string>> },
): Running {
  const [program, ...first] = pmlCommand();
  return new Deno.Command(program, {
    ...place,
    args: [...first, ...words],
    ...{ clearEnv: true, stdin: "piped", stdout: "piped", stderr: "piped" },
  }).spawn();
}

/** Returns the text of the result of a call. */
export function textIn({ result }: DevEvent): string {
  const { content } = result as { readonly content: readonly { readonly text: string }[] };
  return content.map(({ text }) => text).join("\n");
}

/** Returns the findings of a failed check. */
export function failedIn({ checks }: DevEvent): readonly DevEvent[] {
  return (checks as DevEvent[]).filter(({ state }) => state === "failed");
}

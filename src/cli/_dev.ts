/**
 * `pml dev`: watches the file of a module. Checks the module after each save, and calls its tools on
 * demand.
 *
 * @module
 */

import { openAuthors } from "../authoring/open_authors.ts";
import { quoted } from "../core/json.ts";
import { PathWatcher } from "../io/path_watcher.ts";
import { realPathIfAny, stampAt } from "../io/path_info.ts";
import { settlesWithin } from "../io/waiting.ts";
import type { CommandContext, CommandInput, CommandOutput } from "./_command_context.ts";
import { usage } from "./_failure.ts";
import { DevModule, type WatchedFile } from "./_dev_module.ts";
import { DevOutput } from "./_dev_output.ts";
import { waitForInput } from "./_terminal_input.ts";
import { typedPath } from "./command_process.ts";

/** How long the file may be missing, in milliseconds, because editors remove and write it again. */
const GONE_MS = 400;

/** Watches a module until stdin ends. The exit code is 1 if the last check or call failed. */
export async function dev(
  context: CommandContext,
  { words: [file = ""], json = false, types = true }: CommandInput,
): Promise<CommandOutput> {
  const path = realPathIfAny(typedPath(file)) ?? typedPath(file);
  if (stampAt(path) === undefined) {
    throw usage(`Cannot watch ${quoted(file, 300)}: there is no such file`, "Create it first");
  }
  const { app, signal } = context;
  const output = new DevOutput(file, { isJson: json });
  const input = new DevInput(signal);
  const source = new ModuleSourceFiles(path);
  const module = new DevModule(context, source, output);
  const { machine } = await app.callPath();
  machine.onModuleLog = (_, entry) => output.show({ event: "log", ...entry });
  app.watch();
  while (!input.hasEnded) {
    source.files = await (await openAuthors(app)).filesOf(path);
    // Begins to watch before the file is read, so that no change between the two is lost.
    using watcher = new PathWatcher(source.files, signal);
    const changed = watcher.change();
    if (source.isStale) {
      if (stampAt(path) === undefined && await settlesWithin(changed, GONE_MS)) continue;
      source.noteChecked();
      await module.check(types);
    }
    await runLines(module, { input, changed, output });
  }
  return { value: undefined, code: module.isFailed ? 1 : 0 };
}

/** The file of the module, and the files that it imports. */
class ModuleSourceFiles implements WatchedFile {
  readonly path: string;
  files: readonly string[] = [];
  /** The stamps of the files at the last check. */
  #checkedStamps = "";

  constructor(path: string) {
    this.path = path;
  }

  get isStale(): boolean {
    return this.#stamps() !== this.#checkedStamps;
  }

  noteChecked(): void {
    this.#checkedStamps = this.#stamps();
  }

  #stamps(): string {
    return JSON.stringify(this.files.map(stampAt));
  }
}

/** Runs the calls that the user types, until the file changes or the input ends. */
async function runLines(
  module: DevModule,
  { input, changed, output }: {
    readonly input: DevInput;
    readonly changed: Promise<void>;
    readonly output: DevOutput;
  },
): Promise<void> {
  for (;;) {
    output.prompt("> ");
    const line = await input.line(changed);
    if (line === undefined) return output.prompt("\n");
    await module.type(line);
  }
}

/** Reads stdin by lines. */
class DevInput {
  readonly #signal: AbortSignal;
  readonly #decoder = new TextDecoder();
  #text = "";
  #isClosed = false;

  /** Stores the signal. Reads nothing yet. */
  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  /** Whether stdin is closed and every line was returned. */
  get hasEnded(): boolean {
    return this.#isClosed && this.#text === "";
  }

  /** Returns the next line; undefined if the input ends or `interrupt` resolves first. */
  async line(interrupt: Promise<void>): Promise<string | undefined> {
    const interrupted = new AbortController();
    void interrupt.then(() => interrupted.abort());
    const stop = AbortSignal.any([this.#signal, interrupted.signal]);
    while (!this.#isClosed && !this.#text.includes("\n")) {
      const bytes = await waitForInput(this.#signal, stop);
      if (bytes?.length === 0) return undefined;
      this.#isClosed = bytes === undefined;
      this.#text += this.#decoder.decode(bytes, { stream: true });
    }
    if (this.hasEnded) return undefined;
    const [line = "", ...rest] = this.#text.split("\n");
    this.#text = rest.join("\n");
    return line.trim();
  }
}

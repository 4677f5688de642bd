/**
 * `pml dev`: follows a module while it is written. It checks each save and calls tools on demand.
 *
 * @module
 */

import { authorsOf } from "../authoring/open_authors.ts";
import { quoted } from "../core/json.ts";
import { PathWatcher } from "../io/following.ts";
import { realPathIfAny, stampAt } from "../io/place.ts";
import { soon } from "../io/waiting.ts";
import type { CommandContext, Shown, Typed } from "./_command_context.ts";
import { usage } from "./_failure.ts";
import { DevModule } from "./_dev_module.ts";
import { DevShown } from "./_dev_shown.ts";
import { nextTyped } from "./_terminal_input.ts";
import { typedPath } from "./command_process.ts";

/** How long a file may be gone while an editor replaces it, in milliseconds. */
const GONE_MS = 400;

/** Follows a module until its input ends. The exit code is 1 if the last check or call failed. */
export async function dev(
  at: CommandContext,
  { words: [file = ""], json = false, types = true }: Typed,
): Promise<Shown> {
  const path = realPathIfAny(typedPath(file)) ?? typedPath(file);
  if (stampAt(path) === undefined) {
    throw usage(`Cannot follow ${quoted(file, 300)}: there is no such file`, "Create it first");
  }
  const { app, signal } = at;
  const output = new DevShown(file, { isJson: json });
  const input = new DevInput(signal);
  let [files, lastText]: [readonly string[], string] = [[], ""];
  const now = () => JSON.stringify(files.map(stampAt));
  const module = new DevModule({
    ...at,
    path,
    types,
    output,
    isStale: () => now() !== lastText,
  });
  const { machine } = await app.callPath();
  machine.onModuleLog = (_, entry) => output.show({ event: "log", ...entry });
  app.watch();
  while (!input.isOver) {
    files = await (await authorsOf(app)).filesOf(path);
    // It is read after the watching has begun, so that no change falls between.
    using following = new PathWatcher(files, signal);
    const changed = following.change();
    if (lastText !== now()) {
      if (stampAt(path) === undefined && await soon(changed, GONE_MS)) continue;
      lastText = now();
      await module.look();
    }
    await answerLines(module, { input, changed, output });
  }
  return { value: undefined, code: module.isFailed ? 1 : 0 };
}

/** Makes the calls that lines say, until the file changes or the input ends. */
async function answerLines(
  module: DevModule,
  { input, changed, output }: {
    readonly input: DevInput;
    readonly changed: Promise<void>;
    readonly output: DevShown;
  },
): Promise<void> {
  for (;;) {
    output.prompt("> ");
    const line = await input.line(changed);
    if (line === undefined) return output.prompt("\n");
    await module.type(line);
  }
}

/** Yields the lines of stdin. */
class DevInput {
  readonly #signal: AbortSignal;
  readonly #decoder = new TextDecoder();
  #text = "";
  #isOver = false;

  /** Reads nothing yet. */
  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  /** Whether nothing more comes. */
  get isOver(): boolean {
    return this.#isOver && this.#text === "";
  }

  /** Returns the next line; undefined if the input ends first, or something else happens. */
  async line(happens: Promise<void>): Promise<string | undefined> {
    const other = new AbortController();
    void happens.then(() => other.abort());
    const over = AbortSignal.any([this.#signal, other.signal]);
    while (!this.#isOver && !this.#text.includes("\n")) {
      const bytes = await nextTyped(this.#signal, over);
      if (bytes?.length === 0) return undefined;
      this.#isOver = bytes === undefined;
      this.#text += this.#decoder.decode(bytes, { stream: true });
    }
    if (this.isOver) return undefined;
    const [line = "", ...rest] = this.#text.split("\n");
    this.#text = rest.join("\n");
    return line.trim();
  }
}

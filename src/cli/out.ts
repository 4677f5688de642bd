/**
 * Everything that the command line writes: results to stdout, all else to stderr.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { visible } from "../core/json.ts";

/** Writes a text to stdout as it is, with a line end behind it. */
export function print(text: string): void {
  const shown = Deno.stdout.isTerminal() ? harmless(text) : text;
  write(Deno.stdout, shown.endsWith("\n") ? shown : `${shown}\n`);
}

/** Writes a value to stdout as indented JSON. */
export function printJson(value: unknown): void {
  write(Deno.stdout, `${JSON.stringify(value, null, 2)}\n`);
}

/** Tells the person something on stderr. */
export function tell(text: string): void {
  write(Deno.stderr, `${harmless(text)}\n`);
}

/** Begins a line on stderr that the person ends. */
export function prompt(text: string): void {
  write(Deno.stderr, harmless(text));
}

/** One line of the terminal that says how far something is; nothing where there is none. */
export class ProgressLine implements Disposable {
  readonly #shows = Deno.stderr.isTerminal();
  #shown = false;

  /** Shows a text in the place of the one before. */
  show(text: string): void {
    if (!this.#shows) return;
    this.#shown = true;
    write(Deno.stderr, `\r\x1b[2K${visible(text, 70)}`);
  }

  /** Takes the line away. */
  [Symbol.dispose](): void {
    if (this.#shown) write(Deno.stderr, "\r\x1b[2K");
  }
}

/** Makes what could steer a terminal visible, and leaves lines and tabs as they are. */
export function harmless(text: string): string {
  return text.replace(/(?:(?!\r?\n)[^\t])+/g, (part) => visible(part, Infinity));
}

function write(stream: typeof Deno.stdout | typeof Deno.stderr, text: string): void {
  const bytes = new TextEncoder().encode(text);
  try {
    for (let at = 0; at < bytes.length;) at += stream.writeSync(bytes.subarray(at));
  } catch (error) {
    // Whoever read this has seen enough, as `head` does; and where stderr fails, nobody listens.
    if (error instanceof Deno.errors.BrokenPipe || stream === Deno.stderr) return;
    const why = error instanceof Error ? error.message : String(error);
    throw new PmlError("USAGE", `Cannot write to stdout: ${why}`, {
      hint: "Look where the output goes",
      cause: error,
    });
  }
}

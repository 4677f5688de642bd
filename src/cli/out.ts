/**
 * Everything that the command line writes: results to stdout, all else to stderr.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { visible } from "../core/json.ts";

/** Writes a text to stdout with a line end behind it: as it is, but harmless to a terminal. */
export function print(text: string): void {
  const shown = Deno.stdout.isTerminal() ? harmless(text) : text;
  write(Deno.stdout, shown.endsWith("\n") ? shown : `${shown}\n`);
}

/** Writes a value to stdout as indented JSON. */
export function printJson(value: unknown): void {
  print(JSON.stringify(value, null, 2));
}

/** Tells the person something on stderr, in a line of its own unless another end is given. */
export function tell(text: string, end = "\n"): void {
  write(Deno.stderr, harmless(text) + end);
}

/** Makes what could steer a terminal visible, and leaves lines and tabs as they are. */
export function harmless(text: string): string {
  return text.replace(/(?:(?!\r?\n)[^\t])+/g, (part) => visible(part, Infinity));
}

function write(stream: typeof Deno.stdout | typeof Deno.stderr, text: string): void {
  const bytes = new TextEncoder().encode(text);
  try {
    for (let at = 0; at < bytes.length;) at += stream.writeSync(bytes.subarray(at));
  } catch (cause) {
    // Whoever read this has seen enough, as `head` does; and where stderr fails, nobody listens.
    if (cause instanceof Deno.errors.BrokenPipe || stream === Deno.stderr) return;
    throw new PmlError("USAGE", `Cannot write to stdout: ${cause}`, {
      hint: "Look where the output goes",
      cause,
    });
  }
}

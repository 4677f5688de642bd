/**
 * Writes all output of the command line: results to stdout, everything else to stderr.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { visible } from "../core/json.ts";

/** Writes a text and a line end to stdout. On a terminal, control characters are made visible. */
export function print(text: string): void {
  const shown = Deno.stdout.isTerminal() ? harmless(text) : text;
  write(Deno.stdout, shown.endsWith("\n") ? shown : `${shown}\n`);
}

/** Writes a value to stdout as indented JSON. */
export function printJson(value: unknown): void {
  print(JSON.stringify(value, null, 2));
}

/** Writes a text to stderr, with a line end unless `end` says otherwise. */
export function tell(text: string, end = "\n"): void {
  write(Deno.stderr, harmless(text) + end);
}

/** Makes control characters visible, except line ends and tabs. */
export function harmless(text: string): string {
  return text.replace(/(?:(?!\r?\n)[^\t])+/g, (part) => visible(part, Infinity));
}

function write(stream: typeof Deno.stdout | typeof Deno.stderr, text: string): void {
  const bytes = new TextEncoder().encode(text);
  try {
    for (let at = 0; at < bytes.length;) at += stream.writeSync(bytes.subarray(at));
  } catch (cause) {
    // The reader closed the pipe, as `head` does. If stderr fails, nobody can be told.
    if (cause instanceof Deno.errors.BrokenPipe || stream === Deno.stderr) return;
    throw new PmlError("USAGE", `Cannot write to stdout: ${cause}`, {
      hint: "Check where the output goes",
      cause,
    });
  }
}

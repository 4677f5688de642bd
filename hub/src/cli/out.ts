/**
 * Writes all output of the hub's command line: results to stdout, everything else to stderr.
 *
 * @module
 */

import { visible } from "@casys/pml/registry";
import { type HubProcess, hubProcess } from "./hub_process.ts";

/** Writes a line to stdout. On a terminal, control characters are shown as escapes. */
export function print(text: string): void {
  const { stdout } = hubProcess();
  write(stdout, stdout.isTerminal() ? withVisibleControls(text) : text);
}

/**
 * Writes a line to stderr, with control characters as escapes. Code that runs in a request must pass
 * the process of its command.
 */
export function printToStderr(text: string, { stderr } = hubProcess()): void {
  write(stderr, withVisibleControls(text));
}

/**
 * The maximum number of rows of Deno's progress bar: two lines, each of which may wrap because of a
 * long address.
 */
const BAR_ROWS = 4;

/**
 * Protects printed lines on a terminal from Deno. In its first run, Deno starts the program while it
 * still downloads dependencies. When its progress bar ends, Deno erases as many rows above the cursor
 * as the bar had. This prints empty lines, which are erased instead of the printed ones.
 */
export function keepOnTerminal(): void {
  const { stdout, stderr } = hubProcess();
  if (stdout.isTerminal() && stderr.isTerminal()) printToStderr("\n".repeat(BAR_ROWS - 1));
}

function withVisibleControls(text: string): string {
  return text.split("\n").map((line) => visible(line, Infinity)).join("\n");
}

function write(stream: HubProcess["stdout"], text: string): void {
  const bytes = new TextEncoder().encode(`${text}\n`);
  for (let at = 0; at < bytes.length;) at += stream.writeSync(bytes.subarray(at));
}

/** Asks the user on a terminal. Returns whether the answer is yes; false without a terminal. */
export async function ask(question: string): Promise<boolean> {
  const { stdin, stderr } = hubProcess();
  if (!stdin.isTerminal()) return false;
  stderr.writeSync(new TextEncoder().encode(`${withVisibleControls(question)} [y/N] `));
  const line = new Uint8Array(100);
  const length = await stdin.read(line) ?? 0;
  return /^y(es)?$/i.test(new TextDecoder().decode(line.subarray(0, length)).trim());
}

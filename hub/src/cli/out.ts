/**
 * Writes all output of the hub's command line: results to stdout, everything else to stderr.
 *
 * @module
 */

import { visible } from "@casys/pml/registry";
import { type HubProcess, hubProcess } from "./hub_process.ts";

/** Writes a line to stdout. Control characters are made visible on a terminal. */
export function print(text: string): void {
  const { stdout } = hubProcess();
  write(stdout, stdout.isTerminal() ? harmless(text) : text);
}

/**
 * Writes a line to stderr, in which control characters are made visible. Code that runs for a request
 * passes the process of its command.
 */
export function tell(text: string, { stderr } = hubProcess()): void {
  write(stderr, harmless(text));
}

/**
 * The maximum number of rows that the progress bar of Deno takes: two lines, of which an address
 * may wrap.
 */
const BAR_ROWS = 4;

/**
 * Keeps the lines printed so far on a terminal. In its first run Deno starts the program while it
 * still fetches in the background. When its progress bar ends, it erases as many rows above the cursor
 * as it had. These empty lines are erased in place of printed ones.
 */
export function keepOnTerminal(): void {
  const { stdout, stderr } = hubProcess();
  if (stdout.isTerminal() && stderr.isTerminal()) tell("\n".repeat(BAR_ROWS - 1));
}

function harmless(text: string): string {
  return text.split("\n").map((line) => visible(line, Infinity)).join("\n");
}

function write(stream: HubProcess["stdout"], text: string): void {
  const bytes = new TextEncoder().encode(`${text}\n`);
  for (let at = 0; at < bytes.length;) at += stream.writeSync(bytes.subarray(at));
}

/** Asks on a terminal. Returns whether the answer is yes; no without a terminal. */
export async function ask(question: string): Promise<boolean> {
  const { stdin, stderr } = hubProcess();
  if (!stdin.isTerminal()) return false;
  stderr.writeSync(new TextEncoder().encode(`${harmless(question)} [y/N] `));
  const line = new Uint8Array(100);
  const length = await stdin.read(line) ?? 0;
  return /^y(es)?$/i.test(new TextDecoder().decode(line.subarray(0, length)).trim());
}

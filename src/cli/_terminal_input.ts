/**
 * What is typed at the terminal, or comes on stdin. A terminal is looked at without waiting: what
 * was typed before a question is there when PML looks, however busy the machine is. A read that
 * waits in another thread could tell of it after the question.
 *
 * @module
 */

import { closeSync, constants, openSync, readSync } from "node:fs";
import { onAbort, pause, soon } from "../io/waiting.ts";
import { commandProcess } from "./command_process.ts";

/** How often PML looks for what was typed, in milliseconds. */
const LOOK_MS = 25;

/** Returns what came since the last call: empty if nothing did, undefined if nothing more comes. */
export async function takeTyped(signal: AbortSignal): Promise<Uint8Array | undefined> {
  const file = openTerminal();
  if (file === undefined) return await takeStream(signal);
  try {
    const bytes = new Uint8Array(4_096);
    const length = readSync(file, bytes);
    return length === 0 ? undefined : bytes.subarray(0, length);
  } catch {
    return new Uint8Array(); // EAGAIN; SIGHUP tells that the terminal is gone
  } finally {
    closeSync(file);
  }
}

/**
 * Returns what comes next: undefined if nothing more does or the signal aborts, empty if only this
 * wait is over first.
 */
export async function nextTyped(
  signal: AbortSignal,
  over: AbortSignal = signal,
): Promise<Uint8Array | undefined> {
  while (!over.aborted) {
    const bytes = await takeTyped(signal);
    if (bytes?.length !== 0) return bytes;
    await pause(LOOK_MS, over);
  }
  return signal.aborted ? undefined : new Uint8Array();
}

/** Returns all that comes on stdin. */
export async function readAll(): Promise<string> {
  return await new Response(commandProcess().stdin.readable).text();
}

/** Ends the reading: a read that waits would keep the process alive. */
export function endInput(): void {
  commandProcess().stdin.readable.cancel().catch(() => {}); // it was closed already
}

/** Opens the terminal anew: what others share as stdin must go on to wait. */
function openTerminal(): number | undefined {
  if (!commandProcess().stdin.isTerminal()) return undefined;
  try {
    // Elsewhere, whoever opens /dev/stdin gets the file that waits.
    const path = Deno.build.os === "linux" ? "/dev/stdin" : "/dev/tty";
    return openSync(path, constants.O_NOCTTY | constants.O_NONBLOCK); // O_RDONLY is 0
  } catch {
    return undefined; // Windows, or the terminal of another user
  }
}

/** Reads what comes soon. What comes later is kept for the next call. */
async function takeStream(signal: AbortSignal): Promise<Uint8Array | undefined> {
  const reader = commandProcess().stdin.readable.getReader();
  using _ = onAbort(signal, () => void reader.cancel().catch(() => {})); // it was closed already
  const read = reader.read();
  read.catch(() => {}); // released below
  try {
    return await soon(read, LOOK_MS) ? (await read).value : new Uint8Array();
  } finally {
    reader.releaseLock();
  }
}

/**
 * Reads the terminal, or stdin. A terminal is read without blocking, so that a read before a question
 * returns all earlier input even on a busy machine. A blocking read in another thread could return that
 * input after the question.
 *
 * @module
 */

import { closeSync, constants, openSync, readSync } from "node:fs";
import { onAbort, pause, settlesWithin } from "../io/waiting.ts";
import { commandProcess } from "./command_process.ts";

/** How often PML reads the terminal, in milliseconds. */
const POLL_MS = 25;

/** Returns the input since the last call; undefined at the end of the input. */
export async function readInput(signal: AbortSignal): Promise<Uint8Array | undefined> {
  const file = openTerminal();
  if (file === undefined) return await takeStream(signal);
  try {
    const bytes = new Uint8Array(4_096);
    const length = readSync(file, bytes);
    return length === 0 ? undefined : bytes.subarray(0, length);
  } catch {
    return new Uint8Array(); // EAGAIN; SIGHUP reports that the terminal is gone
  } finally {
    closeSync(file);
  }
}

/**
 * Returns the next input. Returns undefined at the end of the input or if `signal` aborts, and an
 * empty array if only `waitSignal` aborts.
 */
export async function waitForInput(
  signal: AbortSignal,
  waitSignal: AbortSignal = signal,
): Promise<Uint8Array | undefined> {
  while (!waitSignal.aborted) {
    const bytes = await readInput(signal);
    if (bytes?.length !== 0) return bytes;
    await pause(POLL_MS, waitSignal);
  }
  return signal.aborted ? undefined : new Uint8Array();
}

/** Reads stdin until its end. */
export async function readAll(): Promise<string> {
  return await new Response(commandProcess().stdin.readable).text();
}

/** Stops reading stdin, because a pending read would keep the process alive. */
export function endInput(): void {
  commandProcess().stdin.readable.cancel().catch(() => {}); // it was closed already
}

/** Opens the terminal separately: reads of stdin by other programs must stay blocking. */
function openTerminal(): number | undefined {
  const { stdin, terminalFile } = commandProcess();
  if (terminalFile === undefined || !stdin.isTerminal()) return undefined;
  try {
    return openSync(terminalFile, constants.O_NOCTTY | constants.O_NONBLOCK); // O_RDONLY is 0
  } catch {
    return undefined; // Windows, or the terminal of another user
  }
}

/** Reads the input that comes soon. Later input is kept for the next call. */
async function takeStream(signal: AbortSignal): Promise<Uint8Array | undefined> {
  const reader = commandProcess().stdin.readable.getReader();
  using _ = onAbort(signal, () => void reader.cancel().catch(() => {})); // it was closed already
  const read = reader.read();
  read.catch(() => {}); // released below
  try {
    return await settlesWithin(read, POLL_MS) ? (await read).value : new Uint8Array();
  } finally {
    reader.releaseLock();
  }
}

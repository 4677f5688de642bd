/**
 * Questions to the person at the terminal. They go to stderr: stdout is for results.
 *
 * @module
 */

import type { Reply } from "../core/call.ts";
import { PmlError } from "../core/errors.ts";
import { prompt, tell } from "./out.ts";

const ENTER = ["\r", "\n"];
/** Ctrl-C and Ctrl-D, where the terminal does not act on them itself. */
const BREAK_OFF = ["\u0003", "\u0004"];
const LONGEST = 64 * 1024;

/** Tells whether a person can be asked here. */
export function isTerminal(): boolean {
  return Deno.stdin.isTerminal() && Deno.stderr.isTerminal();
}

/** Refuses what only a person may do where none is at a terminal. */
export function needPerson(tried: string, hint: string): void {
  if (isTerminal()) return;
  throw new PmlError("APPROVAL_REQUIRED", `${tried}: there is no person at a terminal here`, {
    hint,
  });
}

/** Asks Yes, Always or No. Only a whole word is an answer; breaking off is one too. */
export async function askReply(
  message: string,
  options: { readonly always: boolean; readonly signal: AbortSignal },
): Promise<Reply> {
  const replies: readonly Reply[] = options.always ? ["Yes", "Always", "No"] : ["Yes", "No"];
  const shown = `${message} (${replies.join(", ")})`;
  for (;;) {
    const word = await askWord(shown, options.signal);
    if (word === undefined) return "cancelled";
    const reply = replies.find((each) => each.toLowerCase() === word.toLowerCase());
    if (reply !== undefined) return reply;
    tell(`Type one of these words: ${replies.join(", ")}`);
  }
}

/** Asks for a word; gives nothing where the person broke off. */
export async function askWord(message: string, signal: AbortSignal): Promise<string | undefined> {
  prompt(`${message}: `);
  const line = await readUntil(ENTER, signal);
  if (line === undefined) tell("");
  return line?.trim();
}

/** Asks for a secret without showing it; gives nothing where the person broke off. */
export async function askSecret(message: string, signal: AbortSignal): Promise<string | undefined> {
  prompt(`${message}: `);
  Deno.stdin.setRaw(true);
  try {
    // In this mode the terminal neither shows nor interprets what is typed.
    const typed = await readUntil([...ENTER, ...BREAK_OFF], signal);
    if (typed === undefined || holdsAny(typed, BREAK_OFF)) return undefined;
    return rubbedOut(typed).trim();
  } finally {
    Deno.stdin.setRaw(false);
    tell("");
  }
}

/** Asks whether to do something; anything but yes is no. */
export async function askYes(message: string, signal: AbortSignal): Promise<boolean> {
  return await askReply(message, { always: false, signal }) === "Yes";
}

/** Reads to a character that ends it; gives nothing at the end of input and at an abort. */
async function readUntil(
  ends: readonly string[],
  signal: AbortSignal,
): Promise<string | undefined> {
  if (signal.aborted) return undefined;
  const reader = Deno.stdin.readable.getReader();
  // A pending read would keep the process alive.
  const stop = () => void reader.cancel().catch(() => {}); // it was closed already
  signal.addEventListener("abort", stop, { once: true });
  const decoder = new TextDecoder();
  try {
    for (let text = ""; text.length < LONGEST;) {
      const { done, value } = await reader.read();
      if (done) return undefined;
      text += decoder.decode(value, { stream: true });
      if (holdsAny(text, ends)) return text;
    }
    return undefined;
  } finally {
    signal.removeEventListener("abort", stop);
    reader.releaseLock();
  }
}

function holdsAny(text: string, characters: readonly string[]): boolean {
  return characters.some((character) => text.includes(character));
}

/** Applies the backspaces. */
function rubbedOut(typed: string): string {
  const kept: string[] = [];
  for (const character of typed) {
    if (character === "\u007f" || character === "\b") kept.pop();
    else kept.push(character);
  }
  return kept.join("");
}

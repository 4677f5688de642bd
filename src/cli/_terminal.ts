/**
 * Asks questions of the person at the terminal. They go to stderr, because stdout is for results.
 *
 * @module
 */

import type { Reply } from "../core/call.ts";
import { PmlError } from "../core/errors.ts";
import { onAbort } from "../io/waiting.ts";
import { tell } from "./out.ts";

/** Ctrl-C and Ctrl-D, if the terminal passes them on as characters. */
const BREAK_OFF = ["\u0003", "\u0004"];
const ENDS = ["\r", "\n", ...BREAK_OFF];
/** What the backspace and delete keys send. */
const RUB_OUT = ["\u007f", "\b"];

/** Returns whether a person can be asked here. */
export function isTerminal(): boolean {
  return Deno.stdin.isTerminal() && Deno.stderr.isTerminal();
}

/** Throws `APPROVAL_REQUIRED` if there is no person at a terminal. */
export function needPerson(tried: string, command: string): void {
  if (isTerminal()) return;
  throw new PmlError("APPROVAL_REQUIRED", `${tried}: there is no person at a terminal`, {
    hint: `Run \`${command}\` yourself on a terminal; \`${command} --json\` only shows it`,
  });
}

/**
 * Asks Yes, Always or No, until one of these words is typed. Returns "cancelled" if the person
 * stops.
 */
export async function askReply(
  message: string,
  { always = false, signal }: { readonly always?: boolean; readonly signal: AbortSignal },
): Promise<Reply> {
  const replies: readonly Reply[] = always ? ["Yes", "Always", "No"] : ["Yes", "No"];
  for (;;) {
    const word = await askWord(`${message} (${replies.join(", ")})`, signal);
    if (word === undefined) return "cancelled";
    const reply = replies.find((each) => each.toLowerCase() === word.toLowerCase());
    if (reply !== undefined) return reply;
  }
}

/** Asks for one line. Returns undefined if the person stops. */
export async function askWord(message: string, signal: AbortSignal): Promise<string | undefined> {
  tell(`${message}: `, "");
  const line = await readLine(signal);
  if (line === undefined) tell("");
  return line?.trim();
}

/** Asks for one line without showing what is typed. */
export async function askSecret(message: string, signal: AbortSignal): Promise<string | undefined> {
  // In raw mode the terminal neither shows nor interprets what is typed.
  Deno.stdin.setRaw(true);
  try {
    return await askWord(message, signal);
  } finally {
    Deno.stdin.setRaw(false);
    tell("");
  }
}

async function readLine(signal: AbortSignal): Promise<string | undefined> {
  if (signal.aborted) return undefined;
  const reader = Deno.stdin.readable.getReader();
  // A pending read would keep the process alive.
  using _ = onAbort(signal, () => void reader.cancel().catch(() => {})); // it was closed already
  const decoder = new TextDecoder();
  let text = "";
  try {
    while (!holdsAny(text, ENDS)) {
      const { done, value } = await reader.read();
      if (done) return undefined;
      text += decoder.decode(value, { stream: true });
    }
  } finally {
    reader.releaseLock();
  }
  return holdsAny(text, BREAK_OFF) ? undefined : rubbedOut(text);
}

function holdsAny(text: string, characters: readonly string[]): boolean {
  return characters.some((character) => text.includes(character));
}

function rubbedOut(typed: string): string {
  let kept = "";
  for (const key of typed) kept = RUB_OUT.includes(key) ? kept.slice(0, -1) : kept + key;
  return kept;
}

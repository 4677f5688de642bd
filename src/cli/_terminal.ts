/**
 * Asks questions of the person at the terminal. They go to stderr, because stdout is for results.
 *
 * @module
 */

import type { Reply } from "../core/call.ts";
import { PmlError } from "../core/errors.ts";
import { onAbort, soon } from "../io/waiting.ts";
import { paintQuestion } from "./_paint.ts";
import { tell } from "./out.ts";

/** Ctrl-C and Ctrl-D, if the terminal passes them on as characters. */
const BREAK_OFF = ["\u0003", "\u0004"];
const ENDS = ["\r", "\n", ...BREAK_OFF];
/** How long nothing must come before what was typed counts as thrown away, in milliseconds. */
const QUIET_MS = 250;
/** The same behind a key that means nothing: the rest of a word comes at the speed of a person. */
const WORD_MS = 600;
/** What the backspace and delete keys send. */
const RUB_OUT = ["\u007f", "\b"];

/** Returns whether a person can be asked here. */
export function isTerminal(): boolean {
  return Deno.stdin.isTerminal() && Deno.stderr.isTerminal();
}

/** Throws `APPROVAL_REQUIRED` if there is no person at a terminal. `also` tells of another way. */
export function needPerson(tried: string, also = "; `--json` only shows it"): void {
  if (isTerminal()) return;
  const command = ["pml", ...Deno.args].map(shellWord).join(" ");
  throw new PmlError("APPROVAL_REQUIRED", `${tried}: there is no person at a terminal`, {
    hint: `Run \`${command}\` yourself on a terminal${also}`,
  });
}

/** Returns a word as a person types it for a shell. */
function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** The options of `askReply`. */
interface ReplyOptions {
  /** Whether "always" is offered. */
  readonly always?: boolean;
  /** Whether a yes holds once only, which the question then says. */
  readonly once?: boolean;
  /** What a key that means nothing is answered with, behind the keys that do. */
  readonly pending?: string;
  readonly signal: AbortSignal;
}

/**
 * Asks for one key: y, n, or a where "always" is offered. Enter is no. What was typed before the
 * question is thrown away. Returns "cancelled" if the person stops.
 */
export async function askReply(
  message: string,
  { always = false, once = false, pending = "", signal }: ReplyOptions,
): Promise<Reply> {
  const replies = new Map<string, Reply>([["y", "Yes"], ["n", "No"], ["\r", "No"], ["\n", "No"]]);
  if (always) replies.set("a", "Always");
  // In raw mode each key comes at once, and none is shown.
  setRaw();
  try {
    await dropTyped(signal);
    tell(
      `${message} [y] ${once ? "once" : "yes"}${always ? "  [a] always" : ""}  [N] no `,
      { end: "", paint: paintQuestion },
    );
    for (;;) {
      const key = (await readUntil(signal, () => true))?.[0]?.toLowerCase() ?? "\u0003";
      if (BREAK_OFF.includes(key)) {
        tell("");
        return "cancelled";
      }
      const reply = replies.get(key);
      if (reply !== undefined) {
        tell(reply.toLowerCase());
        return reply;
      }
      await dropTyped(signal, WORD_MS);
      tell(`\nPress y${always ? ", a" : ""} or n.${pending} `, { end: "" });
    }
  } finally {
    // Who types the whole word does not type the rest into the next question, or the shell.
    await dropTyped(signal);
    Deno.stdin.setRaw(false);
  }
}

/**
 * Asks for one line; what was typed before the question is thrown away. Returns undefined if the
 * person stops.
 */
export async function askWord(message: string, signal: AbortSignal): Promise<string | undefined> {
  if (Deno.stdin.isTerminal()) {
    setRaw();
    await dropTyped(signal).finally(() => Deno.stdin.setRaw(false));
  }
  return await askLine(message, signal);
}

async function askLine(message: string, signal: AbortSignal): Promise<string | undefined> {
  tell(`${message}: `, { end: "" });
  const text = await readUntil(signal, (typed) => holdsAny(typed, ENDS));
  const line = text === undefined || holdsAny(text, BREAK_OFF) ? undefined : rubbedOut(text);
  if (line === undefined) tell("");
  return line?.trim();
}

/** Asks for one line without showing what is typed. */
export async function askSecret(message: string, signal: AbortSignal): Promise<string | undefined> {
  // In raw mode the terminal neither shows nor interprets what is typed.
  setRaw();
  try {
    await dropTyped(signal);
    return await askLine(message, signal);
  } finally {
    Deno.stdin.setRaw(false);
    tell("");
  }
}

/** Has each key come at once, unseen. Ctrl-C stays a signal where the system can do that. */
function setRaw(): void {
  Deno.stdin.setRaw(true, { cbreak: Deno.build.os !== "windows" });
}

/** Ends reading from the terminal: a read that waits for a key would keep the process alive. */
export async function endInput(): Promise<void> {
  if (isTerminal()) await Deno.stdin.readable.cancel().catch(() => {}); // somebody else reads it
}

/** Throws away what was typed, until nothing comes for a moment. The terminal must be in raw mode. */
async function dropTyped(signal: AbortSignal, quiet = QUIET_MS): Promise<void> {
  const reader = Deno.stdin.readable.getReader();
  using _ = onAbort(signal, () => void reader.cancel().catch(() => {})); // as below
  try {
    while (!signal.aborted) {
      const read = reader.read();
      read.catch(() => {}); // released below
      if (!await soon(read, quiet) || (await read).done) return;
    }
  } finally {
    reader.releaseLock();
  }
}

/** Reads until the text is enough. Returns undefined if nothing more comes, or the signal aborts. */
async function readUntil(
  signal: AbortSignal,
  isEnough: (text: string) => boolean,
): Promise<string | undefined> {
  const decoder = new TextDecoder();
  let text = "";
  while (text === "" || !isEnough(text)) {
    const read = signal.aborted ? undefined : await readSome(signal);
    if (read === undefined || read.done) return undefined;
    text += decoder.decode(read.value, { stream: true });
  }
  return text;
}

/**
 * Reads what comes next from stdin. Returns undefined if something else happens first; what comes
 * later is then kept for the next reader.
 */
export async function readSome(
  signal: AbortSignal,
  happens: Promise<unknown> = new Promise(() => {}),
) {
  const reader = Deno.stdin.readable.getReader();
  // A pending read would keep the process alive.
  using _ = onAbort(signal, () => void reader.cancel().catch(() => {})); // it was closed already
  const read = reader.read();
  read.catch(() => {}); // released below
  try {
    return await Promise.race([read, happens.then(() => undefined)]);
  } finally {
    reader.releaseLock();
  }
}

function holdsAny(text: string, characters: readonly string[]): boolean {
  return characters.some((character) => text.includes(character));
}

function rubbedOut(typed: string): string {
  let kept = "";
  for (const key of typed) kept = RUB_OUT.includes(key) ? kept.slice(0, -1) : kept + key;
  return kept;
}

/**
 * Asks questions of the user at the terminal. They go to stderr, because stdout is for results.
 *
 * @module
 */

import { type ApprovalReply, type OfferedAnswer, YES_OR_NO } from "../protocol/answers.ts";
import { PmlError } from "../core/errors.ts";
import { pause } from "../io/waiting.ts";
import { paintQuestion } from "./_paint.ts";
import { shellWord } from "./_shell_word.ts";
import { nextTyped, takeTyped } from "./_terminal_input.ts";
import { commandProcess } from "./command_process.ts";
import { tell } from "./out.ts";

/** Ctrl-C and Ctrl-D, if the terminal passes them on as characters. */
const BREAK_OFF = ["\u0003", "\u0004"];
const ENDS = ["\r", "\n", ...BREAK_OFF];
/** How long a question is shown before keys answer it, in milliseconds. */
const SHOWN_MS = 1_000;
/** How long the terminal must be quiet until earlier input is discarded, in milliseconds. */
const QUIET_MS = 250;
/** The same after an unknown key: the user may be typing a word, whose next letters come slowly. */
const WORD_MS = 600;
/** The characters of the backspace and delete keys. */
const RUB_OUT = ["\u007f", "\b"];

/** Returns whether a user can be asked here. */
export function isTerminal(): boolean {
  return commandProcess().stdin.isTerminal() && commandProcess().stderr.isTerminal();
}

/** Throws `APPROVAL_REQUIRED` without a terminal. `also` is a text about another way. */
export function needPerson(tried: string, also = "; `--json` only shows it"): void {
  if (isTerminal()) return;
  const command = ["pml", ...commandProcess().args].map((word) => shellWord(word)).join(" ");
  throw new PmlError("APPROVAL_REQUIRED", `${tried}: there is no terminal`, {
    hint: `Run \`${command}\` yourself on a terminal${also}`,
  });
}

/** The key of each answer on a terminal, and its name. */
const KEYS: Readonly<Record<OfferedAnswer["reply"], readonly [key: string, name: string]>> = {
  Yes: ["y", "yes"],
  Session: ["s", "for this session"],
  Always: ["a", "always"],
  Reads: ["r", "always for these tools that read"],
  All: ["t", "always for these tools"],
  No: ["N", "no"],
  Never: ["d", "never"],
};

/** The options of `askReply`. */
interface ReplyOptions {
  /**
   * The answers to an approval request. Keys within a second after the request appeared are
   * discarded. Missing if it is another question, which is answered yes or no.
   */
  readonly answers?: readonly OfferedAnswer[];
  /** Whether a yes applies once only, which the question then shows. */
  readonly once?: boolean;
  /** The text after the valid keys, for an invalid key. */
  readonly pending?: string;
  readonly signal: AbortSignal;
}

/**
 * Asks for one key: y, n, or that of another offered answer. Enter is no. Input from before the
 * question is discarded. Returns "cancelled" if the user stops.
 */
export async function askReply(
  message: string,
  { answers: approvals, once = false, pending = "", signal }: ReplyOptions,
): Promise<ApprovalReply> {
  const answers = approvals ?? YES_OR_NO;
  const replies = new Map<string, OfferedAnswer["reply"]>([["\r", "No"], ["\n", "No"]]);
  for (const { reply } of answers) replies.set(KEYS[reply][0].toLowerCase(), reply);
  // In raw mode each key comes at once, and none is shown.
  setRaw();
  try {
    await dropTyped(signal, { least: approvals === undefined ? 0 : SHOWN_MS });
    const keys = answers.map((answer) => keyText(answer, once)).join("  ");
    tell(`${message} ${keys} `, { end: "", paint: paintQuestion });
    for (;;) {
      const key = new TextDecoder().decode(await nextTyped(signal))[0]?.toLowerCase() ?? "\u0003";
      if (BREAK_OFF.includes(key)) {
        tell("");
        return "cancelled";
      }
      const reply = replies.get(key);
      if (reply !== undefined) {
        tell(KEYS[reply][1]);
        return reply;
      }
      await dropTyped(signal, { quiet: WORD_MS });
      const keys = answers.map(({ reply }) => KEYS[reply][0].toLowerCase());
      tell(`\nPress ${keys.slice(0, -1).join(", ")} or ${keys.at(-1)}.${pending} `, { end: "" });
    }
  } finally {
    // If the user types a whole word, the rest must not answer the next question, or reach the shell.
    await dropTyped(signal);
    commandProcess().stdin.setRaw(false);
  }
}

/** Returns the key of an answer, and its effect. */
function keyText({ reply, tools }: OfferedAnswer, once: boolean): string {
  const [key, name] = KEYS[reply];
  if (reply === "Yes") return `[${key}] ${once ? "once" : name}`;
  if (reply === "Reads") return `[${key}] ${tools} tools that read`;
  return reply === "All" ? `[${key}] ${tools} tools` : `[${key}] ${name}`;
}

/**
 * Asks for one of these keys. Input from before the question is discarded. Returns undefined if the
 * user stops.
 */
export async function askKey(
  message: string,
  { keys, otherwise, signal }: {
    /** The keys, in lower case, with the meaning of each. */
    readonly keys: Readonly<Record<string, string>>;
    /** The key whose meaning Enter has, too. */
    readonly otherwise: string;
    readonly signal: AbortSignal;
  },
): Promise<string | undefined> {
  const shown = Object.entries(keys).map(([key, meaning]) =>
    `[${key === otherwise ? key.toUpperCase() : key}] ${meaning}`
  );
  setRaw();
  try {
    await dropTyped(signal);
    tell(`${message} ${shown.join("  ")} `, { end: "", paint: paintQuestion });
    for (;;) {
      const typed = new TextDecoder().decode(await nextTyped(signal))[0]?.toLowerCase() ?? "\u0003";
      const key = ["\r", "\n"].includes(typed) ? otherwise : typed;
      if (BREAK_OFF.includes(key) || Object.hasOwn(keys, key)) {
        tell(keys[key] ?? "");
        return BREAK_OFF.includes(key) ? undefined : key;
      }
      await dropTyped(signal, { quiet: WORD_MS });
      tell(`\nPress ${Object.keys(keys).join(", ")}. `, { end: "" });
    }
  } finally {
    await dropTyped(signal);
    commandProcess().stdin.setRaw(false);
  }
}

/** Shows facts, and asks whether the user agrees. */
export async function agrees(
  question: string,
  { signal }: { readonly signal: AbortSignal },
  facts: readonly string[] = [],
): Promise<boolean> {
  for (const fact of facts) tell(fact);
  return await askReply(question, { signal }) === "Yes";
}

/** Asks the user to type a word as a confirmation. Returns whether they did. */
export async function isTyped(word: string, to: string, signal: AbortSignal): Promise<boolean> {
  return await askWord(`Type "${word}" and press Enter to ${to}`, signal) === word;
}

/**
 * Asks for one line. Input from before the question is discarded. Returns undefined if the user stops.
 */
export async function askWord(message: string, signal: AbortSignal): Promise<string | undefined> {
  if (commandProcess().stdin.isTerminal()) {
    setRaw();
    await dropTyped(signal).finally(() => commandProcess().stdin.setRaw(false));
  }
  return await askLine(message, signal);
}

async function askLine(message: string, signal: AbortSignal): Promise<string | undefined> {
  tell(`${message}: `, { end: "" });
  const decoder = new TextDecoder();
  let text = "";
  while (!holdsAny(text, ENDS)) {
    const bytes = await nextTyped(signal);
    text += bytes?.length ? decoder.decode(bytes, { stream: true }) : "\u0003";
  }
  if (!holdsAny(text, BREAK_OFF)) return rubbedOut(text).trim();
  tell("");
  return undefined;
}

/** Asks for one line without showing the input. */
export async function askSecret(message: string, signal: AbortSignal): Promise<string | undefined> {
  // In raw mode the terminal neither shows nor interprets the input.
  setRaw();
  try {
    await dropTyped(signal);
    return await askLine(message, signal);
  } finally {
    commandProcess().stdin.setRaw(false);
    tell("");
  }
}

/** Has each key come at once, unseen. Ctrl-C stays a signal where the system can do that. */
function setRaw(): void {
  commandProcess().stdin.setRaw(true, { cbreak: Deno.build.os !== "windows" });
}

/**
 * Discards input until the terminal is quiet for a moment, and at least for some time. The terminal
 * must be in raw mode.
 */
async function dropTyped(
  signal: AbortSignal,
  { quiet = QUIET_MS, least = 0 }: { readonly quiet?: number; readonly least?: number } = {},
): Promise<void> {
  const end = performance.now() + least;
  await takeTyped(signal);
  while (!signal.aborted) {
    await pause(quiet, signal);
    const isQuiet = !(await takeTyped(signal))?.length;
    // guard: keys-too-soon
    if (performance.now() < end) continue;
    if (isQuiet) return;
  }
}

function holdsAny(text: string, characters: readonly string[]): boolean {
  return characters.some((character) => text.includes(character));
}

function rubbedOut(typed: string): string {
  let text = "";
  for (const key of typed) text = RUB_OUT.includes(key) ? text.slice(0, -1) : text + key;
  return text;
}

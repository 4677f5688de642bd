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

/** A key that answers a question. */
export interface KeyAnswer<T extends string> {
  readonly reply: T;
  /** In lower case. */
  readonly key: string;
  /** The text that confirms the key. */
  readonly name: string;
  /** The text in the question; the name by default. */
  readonly label?: string;
}

/** The key of each answer to an approval request on a terminal, and its name. */
const KEYS: Readonly<Record<OfferedAnswer["reply"], readonly [key: string, name: string]>> = {
  Yes: ["y", "yes"],
  Session: ["s", "for this session"],
  Always: ["a", "always"],
  Reads: ["r", "always for these tools that read"],
  All: ["t", "always for these tools"],
  No: ["n", "no"],
  Never: ["d", "never"],
};

/** Asks for y, n, or the key of another offered answer, as `askKey` does. Enter is no. */
export async function askReply(
  message: string,
  { answers = YES_OR_NO, once = false, ...options }: {
    /** The offered answers; yes and no by default. */
    readonly answers?: readonly OfferedAnswer[];
    /** Whether a yes applies once only, which the question then shows. */
    readonly once?: boolean;
    /** The text after the valid keys, for an invalid key. */
    readonly pending?: string;
    readonly signal: AbortSignal;
  },
): Promise<ApprovalReply> {
  const keys = answers.map((answer) => {
    const [key, name] = KEYS[answer.reply];
    return { reply: answer.reply, key, name, label: labelOf(answer, once) };
  });
  return await askKey(message, { ...options, answers: keys, otherwise: "No" });
}

/** Returns the effect of an answer. */
function labelOf({ reply, tools }: OfferedAnswer, once: boolean): string {
  if (reply === "Yes" && once) return "once";
  if (reply === "Reads") return `${tools} tools that read`;
  return reply === "All" ? `${tools} tools` : KEYS[reply][1];
}

/**
 * Asks for one key. Input from before the question, and within a second after it appeared, is
 * discarded. Returns "cancelled" if the user stops.
 */
export async function askKey<T extends string>(
  message: string,
  { answers, otherwise, pending = "", signal }: {
    readonly answers: readonly KeyAnswer<T>[];
    /** The reply of Enter. Its key is shown in upper case. */
    readonly otherwise: NoInfer<T>;
    /** The text after the valid keys, for an invalid key. */
    readonly pending?: string;
    readonly signal: AbortSignal;
  },
): Promise<T | "cancelled"> {
  const shown = answers.map(({ reply, key, name, label = name }) =>
    `[${reply === otherwise ? key.toUpperCase() : key}] ${label}`
  );
  // In raw mode each key comes at once, and none is shown.
  setRaw();
  try {
    await dropTyped(signal, { least: commandProcess().typingPauses.shown });
    tell(`${message} ${shown.join("  ")} `, { end: "", paint: paintQuestion });
    for (;;) {
      const key = new TextDecoder().decode(await nextTyped(signal))[0]?.toLowerCase() ?? "\u0003";
      if (BREAK_OFF.includes(key)) {
        tell("");
        return "cancelled";
      }
      const isEnter = ["\r", "\n"].includes(key);
      const answer = answers.find((one) => isEnter ? one.reply === otherwise : one.key === key);
      if (answer !== undefined) {
        tell(answer.name);
        return answer.reply;
      }
      await dropTyped(signal, { quiet: commandProcess().typingPauses.word });
      const keys = answers.map((one) => one.key);
      tell(`\nPress ${keys.slice(0, -1).join(", ")} or ${keys.at(-1)}.${pending} `, { end: "" });
    }
  } finally {
    // If the user types a whole word, the rest must not answer the next question, or reach the shell.
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
  { quiet = commandProcess().typingPauses.quiet, least = 0 }: {
    readonly quiet?: number;
    readonly least?: number;
  } = {},
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

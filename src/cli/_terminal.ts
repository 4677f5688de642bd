/**
 * Asks questions of the user at the terminal. They go to stderr, because stdout is for results.
 *
 * @module
 */

import { type ApprovalReply, type OfferedAnswer, YES_OR_NO } from "../protocol/answers.ts";
import { asPmlError, PmlError } from "../core/errors.ts";
import { pause } from "../io/waiting.ts";
import { paintQuestion } from "./_paint.ts";
import { shellWord } from "./_shell_word.ts";
import { readInput, waitForInput } from "./_terminal_input.ts";
import { commandProcess } from "./command_process.ts";
import { tell } from "./out.ts";

/** Ctrl-C and Ctrl-D, if the terminal passes them on as characters. */
const STOP_KEYS = ["\u0003", "\u0004"];
const LINE_ENDS = ["\r", "\n", ...STOP_KEYS];
/** The characters of the backspace and delete keys. */
const BACKSPACES = ["\u007f", "\b"];

/** Returns whether a user can be asked here. */
export function isTerminal(): boolean {
  return commandProcess().stdin.isTerminal() && commandProcess().stderr.isTerminal();
}

/**
 * Throws `APPROVAL_REQUIRED` without a terminal. `tried` is the beginning of the message. The hint ends
 * with `otherWay`, a text about a way that needs no terminal.
 */
export function assertTerminal(tried: string, otherWay = "; `--json` only shows it"): void {
  if (isTerminal()) return;
  const command = ["pml", ...commandProcess().args].map((word) => shellWord(word)).join(" ");
  throw new PmlError("APPROVAL_REQUIRED", `${tried}: there is no terminal`, {
    hint: `Run \`${command}\` yourself on a terminal${otherWay}`,
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

/**
 * Asks for y, n, or the key of another offered answer, as `askKey` does. Enter is no. After the key of
 * an answer for several tools, asks once more; returns "cancelled" if the user does not agree.
 */
export async function askReply(
  message: string,
  { answers = YES_OR_NO, yes, show, ...options }: {
    /** The offered answers; yes and no by default. */
    readonly answers?: readonly OfferedAnswer[];
    /** The effect of a yes, as the question shows it; "yes" by default. */
    readonly yes?: string;
    /** Shows the definitions that an answer for several tools covers, before the second question. */
    readonly show?: (reply: ApprovalReply) => void;
    /** The text after the valid keys, for an invalid key. */
    readonly pending?: string;
    readonly signal: AbortSignal;
  },
): Promise<OfferedAnswer["reply"] | "cancelled"> {
  const keys = answers.map((answer) => {
    const [key, name] = KEYS[answer.reply];
    return { reply: answer.reply, key, name, label: labelOf(answer, yes) };
  });
  const reply = await askKey(message, { ...options, answers: keys, enterReply: "No" });
  const tools = answers.find((answer) => answer.reply === reply)?.tools;
  if (tools === undefined) return reply;
  show?.(reply);
  const agreement = await askReply(`Allow these ${tools} tools?`, { signal: options.signal });
  // guard: set-unread
  return agreement === "Yes" ? reply : "cancelled";
}

/** Returns the effect of an answer. */
function labelOf({ reply, tools }: OfferedAnswer, yes = KEYS.Yes[1]): string {
  if (reply === "Yes") return yes;
  if (reply === "Reads") return `${tools} tools that read`;
  return reply === "All" ? `${tools} tools` : KEYS[reply][1];
}

/**
 * Asks for one key. Input from before the question, and within a second after it appeared, is
 * discarded. Returns "cancelled" if the user stops.
 */
export async function askKey<T extends string>(
  message: string,
  { answers, enterReply, pending = "", signal }: {
    readonly answers: readonly KeyAnswer<T>[];
    /** The reply of Enter. Its key is shown in upper case. */
    readonly enterReply: NoInfer<T>;
    /** The text after the valid keys, for an invalid key. */
    readonly pending?: string;
    readonly signal: AbortSignal;
  },
): Promise<T | "cancelled"> {
  const shown = answers.map(({ reply, key, name, label = name }) =>
    `[${reply === enterReply ? key.toUpperCase() : key}] ${label}`
  );
  // In raw mode each key comes at once, and none is shown.
  setRaw();
  try {
    await discardInput(signal, { minimumMs: commandProcess().typingPauses.shown });
    tell(`${message} ${shown.join("  ")} `, { end: "", paint: paintQuestion });
    for (;;) {
      const key = new TextDecoder().decode(await waitForInput(signal))[0]?.toLowerCase() ??
        "\u0003";
      if (STOP_KEYS.includes(key)) {
        tell("");
        return "cancelled";
      }
      const isEnter = ["\r", "\n"].includes(key);
      const answer = answers.find((one) => isEnter ? one.reply === enterReply : one.key === key);
      if (answer !== undefined) {
        tell(answer.name);
        return answer.reply;
      }
      await discardInput(signal, { quietMs: commandProcess().typingPauses.word });
      const keys = answers.map((one) => one.key);
      tell(`\nPress ${keys.slice(0, -1).join(", ")} or ${keys.at(-1)}.${pending} `, { end: "" });
    }
  } finally {
    // If the user types a whole word, the rest must not answer the next question, or reach the shell.
    await discardInput(signal);
    commandProcess().stdin.setRaw(false);
  }
}

/** Waits for work until the user presses Enter. Returns whether the work has ended. */
export async function untilDoneOrEnter(
  work: Promise<unknown>,
  { text, signal }: { readonly text: string; readonly signal: AbortSignal },
): Promise<boolean> {
  const workEnd = new AbortController();
  const end = () => workEnd.abort();
  work.then(end, end);
  setRaw();
  try {
    await readInput(signal);
    tell(text);
    while (!workEnd.signal.aborted) {
      const typed = await waitForInput(signal, AbortSignal.any([signal, workEnd.signal]));
      if (typed === undefined || containsAny(new TextDecoder().decode(typed), LINE_ENDS)) break;
    }
    return workEnd.signal.aborted;
  } finally {
    commandProcess().stdin.setRaw(false);
  }
}

/**
 * Returns the error of a command that the user stopped at a question, with Ctrl-C or by closing the
 * terminal. `hint` names the changes that the command had made.
 */
export function stopError(hint?: string): PmlError {
  return new PmlError("CANCELLED", "Cannot go on: you stopped at this question", { hint });
}

/**
 * Runs the later questions of a command that has made the changes `done`. If the user stops there,
 * the error names these changes.
 */
export async function afterDone<T>(
  signal: AbortSignal,
  done: readonly string[],
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const { code, hint } = asPmlError(error);
    if (code !== "CANCELLED" && !signal.aborted) throw error;
    const lines = [...done, ...hint === undefined ? [] : [hint]];
    throw stopError(lines.length === 0 ? undefined : lines.join("\n  "));
  }
}

/** Shows facts, and asks whether the user agrees. Throws `CANCELLED` if they stop. */
export async function agrees(
  question: string,
  { signal }: { readonly signal: AbortSignal },
  facts: readonly string[] = [],
): Promise<boolean> {
  for (const fact of facts) tell(fact);
  const reply = await askReply(question, { signal });
  if (reply === "cancelled") throw stopError();
  return reply === "Yes";
}

/**
 * Asks the user to type a word as a confirmation. Returns whether they did. Throws `CANCELLED` if
 * they stop.
 */
export async function confirmWord(word: string, to: string, signal: AbortSignal): Promise<boolean> {
  const text = await askWord(`Type "${word}" and press Enter to ${to}`, signal);
  if (text === undefined) throw stopError();
  return text === word;
}

/**
 * Asks for one line. Input from before the question is discarded. Returns undefined if the user stops.
 */
export async function askWord(message: string, signal: AbortSignal): Promise<string | undefined> {
  if (commandProcess().stdin.isTerminal()) {
    setRaw();
    await discardInput(signal).finally(() => commandProcess().stdin.setRaw(false));
  }
  return await askLine(message, signal);
}

async function askLine(message: string, signal: AbortSignal): Promise<string | undefined> {
  tell(`${message}: `, { end: "" });
  const decoder = new TextDecoder();
  let text = "";
  while (!containsAny(text, LINE_ENDS)) {
    const bytes = await waitForInput(signal);
    text += bytes?.length ? decoder.decode(bytes, { stream: true }) : "\u0003";
  }
  if (!containsAny(text, STOP_KEYS)) return applyBackspaces(text).trim();
  tell("");
  return undefined;
}

/** Asks for one line without showing the input. */
export async function askSecret(message: string, signal: AbortSignal): Promise<string | undefined> {
  // In raw mode the terminal neither shows nor interprets the input.
  setRaw();
  try {
    await discardInput(signal);
    return await askLine(message, signal);
  } finally {
    commandProcess().stdin.setRaw(false);
    tell("");
  }
}

/** Makes the terminal pass each key on at once and hidden. Ctrl-C stays a signal if the system can. */
function setRaw(): void {
  commandProcess().stdin.setRaw(true, { cbreak: Deno.build.os !== "windows" });
}

/**
 * Discards input until none came for `quietMs`, and for at least `minimumMs`. The terminal must be in
 * raw mode.
 */
async function discardInput(
  signal: AbortSignal,
  { quietMs = commandProcess().typingPauses.quiet, minimumMs = 0 }: {
    readonly quietMs?: number;
    readonly minimumMs?: number;
  } = {},
): Promise<void> {
  const end = performance.now() + minimumMs;
  await readInput(signal);
  while (!signal.aborted) {
    await pause(quietMs, signal);
    const isQuiet = !(await readInput(signal))?.length;
    // guard: keys-too-soon
    if (performance.now() < end) continue;
    if (isQuiet) return;
  }
}

function containsAny(text: string, characters: readonly string[]): boolean {
  return characters.some((character) => text.includes(character));
}

function applyBackspaces(typed: string): string {
  let text = "";
  for (const key of typed) text = BACKSPACES.includes(key) ? text.slice(0, -1) : text + key;
  return text;
}

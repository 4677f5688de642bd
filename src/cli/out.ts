/**
 * Writes all output of the command line: results to stdout, everything else to stderr.
 *
 * @module
 */

import process from "node:process";
import { styleText } from "node:util";
import { PmlError } from "../core/errors.ts";
import { visible } from "../core/json.ts";
import { type CommandProcess, commandProcess } from "./command_process.ts";

/** Adds colours and signs to a text in which every control character is visible already. */
export type Paint = (text: string) => string;

/** Erases the line of progress after the cursor, which is at the beginning of the line. */
const ERASE = "\u001b[K";
/** The width of a line of progress if the terminal does not report its own. */
const COLUMNS = 80;

/**
 * Writes a text and a line end to stdout. On a terminal, control characters are made visible, and
 * the text is painted.
 */
export function print(text: string, paint: Paint = plainText): void {
  const { stdout } = commandProcess();
  const output = stdout.isTerminal() ? eraseLine(paint(escapeControls(text))) : text;
  write(stdout, output.endsWith("\n") ? output : `${output}\n`);
}

/** Writes a value to stdout as indented JSON. */
export function printJson(value: unknown): void {
  print(JSON.stringify(value, null, 2));
}

/**
 * Writes a text and `end` to stderr. On a terminal, the text is broken into lines that fit its width,
 * and painted.
 */
export function tell(
  text: string,
  { end = "\n", paint = plainText }: { readonly end?: string; readonly paint?: Paint } = {},
): void {
  const { stderr } = commandProcess();
  const output = escapeControls(text);
  write(stderr, (stderr.isTerminal() ? eraseLine(paint(fitToTerminal(output))) : output) + end);
}

/** Prints progress: on a terminal, in place of the line before; in a file, as a new line. */
export function tellProgress(text: string): void {
  const { stderr } = commandProcess();
  if (!stderr.isTerminal() || isPlain()) return tell(text);
  const line = escapeControls(text).replaceAll("\n", " ").slice(0, columns(COLUMNS) - 1);
  write(stderr, `\r${ERASE}${line}\r`);
}

/** Writes a line of the log, which is clean already. */
export function writeLog(line: string): void {
  const { stderr } = commandProcess();
  write(stderr, `${stderr.isTerminal() ? eraseLine(line) : line}\n`);
}

/** Makes control characters visible, except line ends and tabs. */
export function escapeControls(text: string): string {
  return text.split(/(\r?\n|\t)/)
    .map((part, index) => index % 2 === 1 ? part : visible(part, Infinity)).join("");
}

/** Returns a text unchanged, for texts from other programs. */
export function plainText(text: string): string {
  return text;
}

function eraseLine(text: string): string {
  return isPlain() ? text : ERASE + text;
}

/** Returns whether the terminal or the user does not want control characters. */
function isPlain(): boolean {
  return styleText("bold", "x", { stream: process.stderr }) === "x";
}

/** Parts without line breaks: commands, which users copy, and the keys of a question. */
const WHOLE = /`[^`\n]*`|\bRun: .*|\[[yaN]\] \w+/g;

/**
 * Breaks lines between words where the terminal is narrower. Continuation lines are indented further
 * than any line begins, or stay in the last column of a list. They keep the mark of a line that
 * another program printed (`| `).
 */
export function fitToTerminal(text: string): string {
  const width = columns(Infinity);
  // A text that is shown has no NUL, because its control characters were made visible before.
  const unbroken = text.replace(WHOLE, (whole) => whole.replaceAll(" ", "\0"));
  return unbroken.split("\n").map((line) => {
    const [mark] = /^ +\| /.exec(line) ?? [];
    const [all = "", lead = ""] = /^( *)(?:.*\S {2,})?/.exec(line) ?? [];
    const column = all !== lead && all.length < width / 2 ? all.length : lead.length + 4;
    const start = mark ?? " ".repeat(column);
    let space = width;
    return line.split(/(?<=\S )(?=\S)/).map((word, index) => {
      const isTooLong = index > 0 && word.trimEnd().length > space;
      space = (isTooLong ? width - start.length : space) - word.length;
      return isTooLong ? `\n${start}${word}` : word;
    }).join("").replace(/ +(?=\n)/g, "");
  }).join("\n").replaceAll("\0", " ");
}

function columns(fallback: number): number {
  try {
    return commandProcess().consoleSize().columns || fallback;
  } catch {
    return fallback;
  }
}

function write(stream: CommandProcess["stderr"], text: string): void {
  const bytes = new TextEncoder().encode(text);
  try {
    for (let offset = 0; offset < bytes.length;) {
      offset += stream.writeSync(bytes.subarray(offset));
    }
  } catch (cause) {
    // The reader closed the pipe, as `head` does. A failure of stderr cannot be reported.
    if (cause instanceof Deno.errors.BrokenPipe || stream === commandProcess().stderr) return;
    throw new PmlError("USAGE", `Cannot write to stdout: ${cause}`, {
      hint: "Check where the output goes",
      cause,
    });
  }
}

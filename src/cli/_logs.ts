/**
 * `pml logs`: shows the standard error of a server, or the log of a module, and with `--follow` also
 * new lines.
 *
 * @module
 */

import { quoted, visibleLines } from "../core/json.ts";
import { parseTail } from "./_arguments.ts";
import { pause } from "../io/waiting.ts";
import { findKind } from "../servers/kinds.ts";
import type { CommandContext, CommandInput, CommandOutput } from "./_command_context.ts";
import { unknownNameError } from "./_failure.ts";
import { plainText, print, tell } from "./out.ts";
import { serverLog } from "./server_log.ts";

/** How often `--follow` reads the log, in milliseconds. */
const POLL_MS = 200;

/** The maximum number of lines for `--tail`. */
const LINES_MAX = 100_000;

/** Shows the last lines of a server from all its runs, and with `--follow` each new line. */
export async function logs(
  { app, signal }: CommandContext,
  { words: [name = ""], json, follow, tail }: CommandInput,
): Promise<CommandOutput> {
  const states = app.servers.states();
  const state = states.find((each) => each.name === name);
  if (state === undefined) {
    const known = states.map((each) => each.name);
    throw unknownNameError("show the log of", name, { why: "there is no such server", known });
  }
  const { home } = app.config();
  const { path, text: whole } = serverLog(home, name);
  // By default, `--follow` shows only new lines.
  const most = tail === undefined ? follow ? 0 : Infinity : parseTail(tail, LINES_MAX);
  const text = whole === undefined ? undefined : lastLines(whole, most);
  const lines = visibleLines((text ?? "").trimEnd(), Infinity);
  const note = text === undefined ? whyEmpty(name, state.kind) : "";
  if (!follow) {
    return {
      value: { server: name, path, text: text ?? null },
      text: lines,
      paint: plainText,
      note,
    };
  }
  const show = (more: string) => {
    for (const line of more.split("\n").filter(Boolean)) {
      if (json) print(JSON.stringify({ server: name, line }));
      else print(visibleLines(line, Infinity), plainText);
    }
  };
  show(text ?? "");
  if (note !== "") tell(note);
  let earlier = whole ?? "";
  while (!signal.aborted) {
    await pause(POLL_MS, signal);
    const now = serverLog(home, name).text ?? "";
    show(newLines(earlier, now));
    earlier = now;
  }
  return { value: undefined };
}

function lastLines(text: string, most: number): string {
  if (most === Infinity) return text;
  const lines = text.split("\n");
  const isWhole = lines.at(-1) === "";
  // `slice(-0)` would return all lines.
  const shownLines = (isWhole ? lines.slice(0, -1) : lines).slice(-most || Infinity);
  return shownLines.map((line) => `${line}\n`).join("");
}

/** Returns whether PML can have the log of a server of this kind: only its operator has another one. */
export function hasLog(kind: string | undefined): boolean {
  return kind === undefined || findKind(kind)?.isOnline !== true;
}

function whyEmpty(name: string, kind: string): string {
  return !hasLog(kind)
    ? `${quoted(name)} is a remote server: only its operator can see its log. ` +
      `\`pml audit --server ${name}\` shows its calls`
    : `The log of ${quoted(name)} is empty: the server has written nothing yet`;
}

/**
 * Returns the part of a log that was not shown yet. The beginning may differ, because the oldest lines
 * of a long log are removed.
 */
function newLines(earlier: string, now: string): string {
  if (now.startsWith(earlier)) return now.slice(earlier.length);
  const lastLine = earlier.slice(earlier.lastIndexOf("\n", earlier.length - 2) + 1);
  const position = now.lastIndexOf(lastLine);
  return lastLine === "" || position < 0 ? now : now.slice(position + lastLine.length);
}

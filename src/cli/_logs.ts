/**
 * `pml logs`: shows the standard error of a server, or the log of a module, and follows it.
 *
 * @module
 */

import { quoted, visibleLines } from "../core/json.ts";
import { pause } from "../io/waiting.ts";
import { kindNamed } from "../servers/kinds.ts";
import type { CommandContext, Shown, Typed } from "./_command_context.ts";
import { misnamed } from "./_failure.ts";
import { plainText, print, tell } from "./out.ts";
import { serverLog } from "./server_log.ts";

const FOLLOW_MS = 200;

/** Shows the last lines of a server, from all its runs; with `--follow`, new ones as they come. */
export async function logs(
  { app, signal }: CommandContext,
  { words: [name = ""], json, follow }: Typed,
): Promise<Shown> {
  const states = app.servers.states();
  const state = states.find((each) => each.name === name);
  if (state === undefined) {
    const known = states.map((each) => each.name);
    throw misnamed("show the log of", name, { why: "there is no such server", known });
  }
  const { home } = app.config();
  const { path, text } = serverLog(home, name);
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
  let earlier = text ?? "";
  while (!signal.aborted) {
    await pause(FOLLOW_MS, signal);
    const now = serverLog(home, name).text ?? "";
    show(newLines(earlier, now));
    earlier = now;
  }
  return { value: undefined };
}

function whyEmpty(name: string, kind: string): string {
  return kindNamed(kind)?.isOnline
    ? `${quoted(name)} is a remote server: its log is at its operator's. ` +
      `\`pml audit --server ${name}\` shows its calls`
    : `The log of ${quoted(name)} is empty: the server has written nothing yet`;
}

/** Returns the end of a log that was not shown yet. The oldest lines of a long log are removed. */
function newLines(earlier: string, now: string): string {
  if (now.startsWith(earlier)) return now.slice(earlier.length);
  const lastLine = earlier.slice(earlier.lastIndexOf("\n", earlier.length - 2) + 1);
  const at = now.lastIndexOf(lastLine);
  return lastLine === "" || at < 0 ? now : now.slice(at + lastLine.length);
}

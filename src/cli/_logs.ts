/**
 * `pml logs`: shows the standard error of a server.
 *
 * @module
 */

import { serverLog } from "./server_log.ts";
import { quoted, visibleLines } from "../core/json.ts";
import type { CommandContext, Shown, Typed } from "./_command_context.ts";
import { misnamed } from "./_failure.ts";
import { asItIs } from "./out.ts";

/** Shows the last lines of a server, from all its runs. */
export function logs({ app }: CommandContext, { words: [name = ""] }: Typed): Promise<Shown> {
  const known = app.servers.states().map((state) => state.name);
  if (!known.includes(name)) {
    throw misnamed("show the log of", name, { why: "there is no such server", known });
  }
  const { path, text } = serverLog(app.config().home, name);
  return Promise.resolve({
    value: { server: name, path, text: text ?? null },
    text: visibleLines((text ?? "").trimEnd(), Infinity),
    paint: asItIs,
    note: text === undefined
      ? `The log of ${quoted(name)} is empty: the server has not written to stderr`
      : "",
  });
}

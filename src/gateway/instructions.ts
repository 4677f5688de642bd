/**
 * What a client's model is told of the connected servers, in few words.
 *
 * @module
 */

import { inset } from "../core/json.ts";
import type { ServerState } from "./servers.ts";

const MAX_BYTES = 2_000;
const LINE_MAX = 120;

/** Names the servers in one line, for the description of `search`. */
export function serverLine(states: readonly ServerState[]): string {
  const names = states.filter((one) => one.state !== "blocked").map((one) => one.name);
  const line = names.join(", ");
  if (line.length <= LINE_MAX) return line;
  const fit = line.slice(0, LINE_MAX).replace(/, [^,]*$/, "");
  return `${fit} and ${names.length - fit.split(", ").length} more`;
}

/** Says how to use PML and how each server stands; under 2 KB whatever there is. */
export function instructions(states: readonly ServerState[]): string {
  const usage =
    "Every tool is reached through this server. Find one with `search`, see its `schema` if need be, run it with `call`, several with `batch`. A call may ask the user first; a refusal is final.";
  const lines = states.map((one) => {
    const why = one.why === undefined ? "" : ` (${inset(one.why, 160)})`;
    return `- ${one.name}${one.state === "blocked" ? ": not usable yet" : ""}${why}`;
  });
  const text = [usage, "Servers:", ...lines].join("\n");
  if (text.length <= MAX_BYTES) return text;
  return `${usage}\nServers: ${serverLine(states)}`;
}

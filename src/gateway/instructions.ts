/**
 * Writes the instructions about the connected servers for a client's model, in few words.
 *
 * @module
 */

import { META_TOOLS, type MetaTool } from "../config/exposure.ts";
import { inset, visible } from "../core/json.ts";
import type { ServerState } from "../servers/lists/servers.ts";

const MAX_BYTES = 2_000;
const LINE_MAX = 120;

/** Returns the instructions of a server, indented so that they do not look like PML's lines. */
export function instructionLines(server: string, text: string): string {
  return `Instructions of ${server}:\n    ${inset(text.trim(), Infinity)}`;
}

/** Returns the beginning of the instructions of a server, in one line. */
export function instructionLine(server: string, text: string): string {
  const start = `Instructions of ${server}: `;
  return `${start}${cut(text.replaceAll(/\s+/g, " ").trim(), LINE_MAX - start.length)}`;
}

function cut(text: string, max: number): string {
  const whole = visible(text, Infinity);
  return whole.length <= max ? whole : `${whole.slice(0, Math.max(max - 1, 0))}…`;
}

/** Names the servers in one line, for the description of `search`. */
export function serverLine(states: readonly ServerState[]): string {
  const names = states.filter((one) => one.state !== "blocked").map((one) => one.name);
  const line = names.join(", ");
  if (line.length <= LINE_MAX) return line;
  const fit = line.slice(0, LINE_MAX).replace(/, [^,]*$/, "");
  return `${fit} and ${names.length - fit.split(", ").length} more`;
}

/** The use of each meta-tool, in the order of their use. */
const USES: Readonly<Record<MetaTool, string>> = {
  search: "find one with `search`",
  schema: "see its `schema` if need be",
  call: "run it with `call`",
  batch: "several with `batch`",
  execute_workflow: "calls that depend on each other with `execute_workflow`",
  execute_code: "code that calls tools with `execute_code`",
};

/** Returns how to use PML. Only tools that are listed are named: others would look broken. */
function usageOf(metaTools: readonly MetaTool[]): string {
  const uses = META_TOOLS.filter((name) => metaTools.includes(name)).map((name) => USES[name])
    .join(", ");
  const how = uses === "" ? "" : ` ${uses.slice(0, 1).toUpperCase()}${uses.slice(1)}.`;
  return `Every tool is reached through this server.${how} A call may ask the user first; a refusal is final.`;
}

/**
 * Returns how to use PML with the listed meta-tools, and the state of each server; under 2 KB for
 * any number of servers.
 */
export function instructions(
  states: readonly ServerState[],
  metaTools: readonly MetaTool[] = META_TOOLS,
): string {
  const usage = usageOf(metaTools);
  const lines = states.map((one) => {
    const why = one.why === undefined ? "" : ` (${inset(one.why, 160)})`;
    return `- ${one.name}${one.state === "blocked" ? ": not usable yet" : ""}${why}`;
  });
  const text = [usage, "Servers:", ...lines].join("\n");
  if (text.length <= MAX_BYTES) return text;
  return `${usage}\nServers: ${serverLine(states)}`;
}

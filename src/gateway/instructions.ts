/**
 * Writes the instructions about the connected servers for a client's model, in few words.
 *
 * @module
 */

import { META_TOOLS, type MetaTool } from "../config/exposure.ts";
import { inset, visible } from "../core/json.ts";
import type { ServerState } from "../servers/lists/servers.ts";
import type { ToolAtHand, ToolsAtHand } from "../servers/lists/tool_names.ts";

/** Some clients cut longer instructions. */
const TEXT_MAX = 2_000;
/** The maximum length of the names of all tools together. */
const NAMES_MAX = 1_200;
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

/** Returns the beginning of a text, with visible characters only. */
export function cut(text: string, max: number): string {
  const whole = visible(text, Infinity);
  return whole.length <= max ? whole : `${whole.slice(0, Math.max(max - 1, 0))}…`;
}

/** Names the servers in one line, each with the number of its tools. */
export function serverLine(
  states: readonly ServerState[],
  { tools = new Map(), most = LINE_MAX }: {
    readonly tools?: ToolsAtHand | undefined;
    readonly most?: number;
  } = {},
): string {
  const names = states.filter((one) => one.state !== "blocked")
    .map(({ name }) => `${name}${countOf(tools.get(name), " (", ")")}`);
  const line = names.join(", ");
  if (line.length <= most) return line;
  const fit = line.slice(0, most).replace(/, [^,]*$/, "");
  return `${fit} and ${names.length - fit.split(", ").length} more`;
}

/** The use of each meta-tool, in the order of their use. */
const USES: Readonly<Record<MetaTool, string>> = {
  search: "find tools with one `search` (`queries`: a phrase for each step)",
  schema: "see a `schema` if need be",
  call: "run one with `call`",
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
 * Returns how to use PML with the listed meta-tools, and the servers with their state: with the
 * calls or the names of all tools while these are short, or else with their numbers. The text has at most 2,000
 * characters for any number of servers.
 */
export function instructions(
  states: readonly ServerState[],
  { metaTools = META_TOOLS, tools }: {
    readonly metaTools?: readonly MetaTool[] | undefined;
    readonly tools?: ToolsAtHand | undefined;
  } = {},
): string {
  const usage = usageOf(metaTools);
  const line = (one: ServerState, about: string) => {
    const why = one.why === undefined ? "" : ` (${inset(one.why, 160)})`;
    return `- ${one.name}${one.state === "blocked" ? ": not usable yet" : about}${why}`;
  };
  const withTexts = (textOf: (tool: ToolAtHand) => string) =>
    states.map((one) => line(one, textsOf(tools?.get(one.name), textOf)));
  const withCounts = () => states.map((one) => line(one, countOf(tools?.get(one.name), ": ")));
  for (const textOf of [callOf, nameOf]) {
    if (!isShort(tools, textOf)) continue;
    const text = [usage, NAMED_TITLE, ...withTexts(textOf)].join("\n");
    if (text.length <= TEXT_MAX) return text;
  }
  const counted = [usage, "Servers:", ...withCounts()].join("\n");
  if (counted.length <= TEXT_MAX) return counted;
  const most = TEXT_MAX - usage.length - 40;
  return `${usage}\nServers: ${serverLine(states, { tools, most })}`;
}

const NAMED_TITLE =
  "Tools by server, for which no search is needed; `schema` shows more. Call one as `server:tool`:";

function nameOf({ name }: ToolAtHand): string {
  return name;
}

function callOf({ name, call = name }: ToolAtHand): string {
  return call;
}

/** Returns whether the texts of all tools are known and short enough. */
function isShort(
  tools: ToolsAtHand | undefined,
  textOf: (tool: ToolAtHand) => string,
): tools is ToolsAtHand {
  if (tools === undefined) return false;
  const length = [...tools.values()].flat().reduce((sum, tool) => sum + textOf(tool).length + 2, 0);
  return length > 0 && length <= NAMES_MAX;
}

function textsOf(
  tools: readonly ToolAtHand[] | undefined,
  textOf: (tool: ToolAtHand) => string,
): string {
  if (tools === undefined) return ": `search` finds its tools";
  if (tools.length === 0) return "";
  return `: ${tools.map((tool) => visible(textOf(tool), Infinity)).join(", ")}`;
}

/** Returns the number of tools between two texts; "" if it is unknown. */
function countOf(tools: readonly ToolAtHand[] | undefined, before: string, after = ""): string {
  if (tools === undefined) return "";
  return `${before}${tools.length} tool${tools.length === 1 ? "" : "s"}${after}`;
}

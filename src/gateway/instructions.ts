/**
 * Writes the instructions about the connected servers for a client's model, in few words.
 *
 * @module
 */

import { META_TOOLS, type MetaTool } from "../config/exposure.ts";
import { indentLines, visible } from "../core/json.ts";
import type { ServerState } from "../servers/lists/servers.ts";
import type { ModelTool, ModelTools } from "../servers/lists/tool_names.ts";

/** The maximum length of the instructions, in characters. Some clients cut longer ones. */
const TEXT_MAX = 2_000;
/** The maximum length of the names of all tools together, or of all their signatures. */
const NAMES_MAX = 1_200;
/** The maximum length of the names of all tools, if some names are followed by parameters. */
const MIXED_MAX = 1_400;
/** The maximum length of a line about a server's instructions, or with the names of servers. */
const LINE_MAX = 120;

/** Returns the instructions of a server, indented so that they do not look like PML's lines. */
export function instructionLines(server: string, text: string): string {
  return `Instructions of ${server}:\n    ${indentLines(text.trim(), Infinity)}`;
}

/** Returns the beginning of the instructions of a server, in one line. */
export function instructionLine(server: string, text: string): string {
  const start = `Instructions of ${server}: `;
  return `${start}${shortenText(text.replaceAll(/\s+/g, " ").trim(), LINE_MAX - start.length)}`;
}

/** Returns the beginning of a text, with visible characters only. */
export function shortenText(text: string, max: number): string {
  const whole = visible(text, Infinity);
  return whole.length <= max ? whole : `${whole.slice(0, Math.max(max - 1, 0))}…`;
}

/**
 * Names the servers in one line, each with the number of its tools, in at most `most` characters.
 */
export function serverLine(
  states: readonly ServerState[],
  { tools = new Map(), most = LINE_MAX }: {
    readonly tools?: ModelTools | undefined;
    readonly most?: number;
  } = {},
): string {
  const names = states.filter((one) => one.state !== "blocked").map(({ name }) => {
    const count = tools.get(name)?.length;
    return count === undefined ? name : `${name} (${count})`;
  });
  const line = names.join(", ");
  if (line.length <= most) return line;
  const fit = line.slice(0, most).replace(/, [^,]*$/, "");
  return `${fit} and ${names.length - fit.split(", ").length} more`;
}

/** The part of the instructions about each meta-tool. */
const USAGE_TEXTS: Readonly<Record<MetaTool, string>> = {
  search: "find tools with one `search` (`queries`: a phrase for each step)",
  schema: "see a `schema` if need be",
  call: "run one with `call`",
  batch: "several with `batch`",
  execute_workflow: "calls that depend on each other with `execute_workflow`",
  execute_code: "code that calls tools with `execute_code`",
};

/** Returns how to use PML. Names only listed meta-tools, because a client cannot call others. */
function usageOf(metaTools: readonly MetaTool[]): string {
  const uses = META_TOOLS.filter((name) => metaTools.includes(name)).map((name) =>
    USAGE_TEXTS[name]
  )
    .join(", ");
  const how = uses === "" ? "" : ` ${uses.slice(0, 1).toUpperCase()}${uses.slice(1)}.`;
  return `Every tool is reached through this server.${how} A call may ask the user first; a refusal is final.`;
}

/**
 * Returns how to use PML with the listed meta-tools, and the servers with their state. The text
 * contains the signatures or the names of all tools, if these are short enough. Otherwise it
 * contains the number of tools of each server, in one line. It has at most 2,000 characters.
 */
export function instructions(
  states: readonly ServerState[],
  { metaTools = META_TOOLS, tools }: {
    readonly metaTools?: readonly MetaTool[] | undefined;
    readonly tools?: ModelTools | undefined;
  } = {},
): string {
  const usage = usageOf(metaTools);
  const line = (server: ServerState, toolsText: string) => {
    const why = server.why === undefined ? "" : ` (${indentLines(server.why, 160)})`;
    return `- ${server.name}${server.state === "blocked" ? ": not usable yet" : toolsText}${why}`;
  };
  for (const formOf of tools === undefined ? [] : formsOf(tools)) {
    const lines = states.map((one) => line(one, textsOf(tools?.get(one.name), formOf(one.name))));
    const text = [usage, NAMED_TITLE, ...lines].join("\n");
    if (text.length <= TEXT_MAX) return text;
  }
  const title = `${usage}\n${tools === undefined ? "Servers: " : COUNTED_TITLE}`;
  const most = TEXT_MAX - title.length - " and 1000000 more".length;
  const counted = `${title}${serverLine(states, { tools, most })}`;
  const problems = states.filter((one) => one.state === "blocked" || one.why !== undefined);
  return problems.reduce((text, one) => {
    const longer = `${text}\n${line(one, "")}`;
    return longer.length <= TEXT_MAX ? longer : text;
  }, counted);
}

/** Returns the text for a tool in the instructions. */
type TextOfTool = (tool: ModelTool) => string;

const NAMED_TITLE =
  "Tools by server, for which no search is needed; `schema` shows more. Call one as `server:tool`:";

const COUNTED_TITLE = "Servers (number of tools): ";

function nameOf({ name }: ModelTool): string {
  return name;
}

function callOf({ name, call = name }: ModelTool): string {
  return call;
}

function shortCallOf({ name, shortCall = name }: ModelTool): string {
  return shortCall;
}

/**
 * Returns the possible texts for the tools, the longest first: for each server, a function that
 * returns the text for a tool. Returns none if even the names are too long.
 */
function formsOf(tools: ModelTools): readonly ((server: string) => TextOfTool)[] {
  const all = [...tools.values()].flat();
  const names = lengthOf(all, nameOf);
  if (names === 0 || names > NAMES_MAX) return [];
  const calls = lengthOf(all, callOf) <= NAMES_MAX ? [() => callOf] : [];
  const short = serversWithCalls(tools, MIXED_MAX - names);
  return [...calls, (server) => short.has(server) ? shortCallOf : nameOf, () => nameOf];
}

/**
 * Returns the servers whose tools are shown with their required parameters. Prefers servers that
 * need the fewest characters for the parameters; all together need at most `most`.
 */
function serversWithCalls(tools: ModelTools, most: number): ReadonlySet<string> {
  const growth = [...tools].map(([server, serverTools]) => ({
    server,
    more: lengthOf(serverTools, shortCallOf) - lengthOf(serverTools, nameOf),
  })).sort((one, other) => one.more - other.more || (one.server < other.server ? -1 : 1));
  let length = 0;
  return new Set(growth.filter(({ more }) => (length += more) <= most).map(({ server }) => server));
}

function lengthOf(tools: readonly ModelTool[], textOf: TextOfTool): number {
  return tools.reduce((sum, tool) => sum + textOf(tool).length + ", ".length, 0);
}

function textsOf(
  tools: readonly ModelTool[] | undefined,
  textOf: TextOfTool,
): string {
  if (tools === undefined) return ": `search` finds its tools";
  if (tools.length === 0) return "";
  return `: ${tools.map((tool) => visible(textOf(tool), Infinity)).join(", ")}`;
}

/**
 * The words of a question to the person: PML's own, with what others wrote made harmless.
 *
 * @module
 */

import { quoted, visible } from "../core/json.ts";
import { splitToolId } from "../core/tool_id.ts";
import type { Subject } from "./subject.ts";

/** The most escaped characters that a client is given to show. */
export const LONGEST_QUESTION = 4_000;

/** Writes the whole question, however long it is. */
export function fullText(subjects: readonly Subject[]): string {
  if (subjects.length === 1) return `PML asks: may this tool run?\n${subjects.map(block).join("")}`;
  const blocks = subjects.map((subject, at) => `\nCall ${at + 1}\n${block(subject)}`);
  return `PML asks: may these ${subjects.length} calls run?\n${blocks.join("")}`;
}

/** Says what the rule that "Always" adds would allow. */
export function alwaysText(rule: string, tool: string | undefined): string {
  return `Always allows ${rule === tool ? "this tool, with any" : "exactly these"} arguments`;
}

/** Names what is asked about, where the whole is too long to be asked there. */
export function shortText(subjects: readonly Subject[], length: number): string {
  const tools = subjects.map((subject) => indented(identity(subject))).join("");
  return `PML asks: may this run?\n${tools}\n` +
    `The question has ${length} characters: \`pml approve\` on a terminal shows it in full`;
}

/** Who and what comes first; what others wrote follows it, one escaped line each. */
function block(subject: Subject): string {
  const { workspace, actor, facts = [] } = subject;
  const given = Object.entries(subject.arguments);
  return indented([
    ...identity(subject),
    `Workspace: ${quoted(workspace, Infinity)}`,
    ...(actor === "local" ? [] : [`Asked by: ${quoted(actor, Infinity)}`]),
    ...facts,
    given.length === 0 ? "Arguments: none" : "Arguments:",
    // One line an argument: an indented print of deeply nested ones grows with their square.
    ...given.map(([name, value]) => `  ${JSON.stringify(name)}: ${JSON.stringify(value)}`),
  ]);
}

function identity({ tool: id }: Subject): string[] {
  const { server, tool } = splitToolId(id);
  return [`Server: ${quoted(server)}`, `Tool: ${quoted(tool, 200)}`];
}

/** Four blanks after an empty line: what renders Markdown shows it as it is. */
function indented(lines: readonly string[]): string {
  return `\n${lines.map((line) => `    ${unhidden(line)}\n`).join("")}`;
}

/**
 * Makes visible what a person cannot see: controls, what Unicode says may be ignored, blanks that
 * are no plain blank, and the rest of a run of blanks that could push text out of sight.
 */
export function unhidden(line: string): string {
  return visible(line, Infinity)
    .replace(/[\p{Default_Ignorable_Code_Point}\u{2800}]|(?! )\p{Zs}/gu, escaped)
    .replace(/(?<=\S {16}) +/g, (run) => escaped(" ").repeat(run.length));
}

function escaped(character: string): string {
  return `\\u{${character.codePointAt(0)?.toString(16)}}`;
}

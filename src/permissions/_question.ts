/**
 * The text of a question to the person. It is PML's own; text of others in it is made safe to show.
 *
 * @module
 */

import { quoted, visible } from "../core/json.ts";
import { containsKnownKey } from "../core/key_kinds.ts";
import { splitToolId } from "../core/tool_id.ts";
import type { Subject } from "./subject.ts";

/** The most characters, after escaping, that a client gets to show. */
export const LONGEST_QUESTION = 4_000;
/** How many calls a short question names. */
const MOST_NAMED = 10;

/** Returns the whole question, however long it is. */
export function fullText(subjects: readonly Subject[]): string {
  if (subjects.length === 1) {
    const may = subjects[0]?.isSaved ? "this be saved as a tool" : "this tool run";
    return `PML asks: may ${may}?\n${subjects.map(block).join("")}`;
  }
  const blocks = withoutRepeats(subjects).map((subject, at) =>
    `\nCall ${at + 1}\n${block(subject)}`
  );
  return `PML asks: may these ${subjects.length} calls run?\n${blocks.join("")}`;
}

/** Returns a line that says what the rule of "Always" would allow. */
export function alwaysText(rule: string, tool: string | undefined): string {
  return `Always allows ${rule === tool ? "this tool, with any" : "exactly these"} arguments`;
}

/** Replaces facts that an earlier call of the question shows by a line that says which one. */
function withoutRepeats(subjects: readonly Subject[]): readonly Subject[] {
  const shown = new Map<string, number>();
  return subjects.map((subject, at) => {
    const { facts = [] } = subject;
    const key = JSON.stringify(facts);
    const first = shown.get(key) ?? at;
    shown.set(key, first);
    if (first === at || facts.length === 0) return subject;
    return {
      ...subject,
      facts: [`What call ${first + 1} says after its workspace holds here too`],
    };
  });
}

/** Returns a short question for calls whose full question is too long for the client. */
export function shortText(subjects: readonly Subject[], length: number): string {
  const named = subjects.slice(0, MOST_NAMED).map((subject) => indented(identity(subject)));
  const left = subjects.length - named.length;
  const tools = named.join("") + (left > 0 ? `\nand ${left} more calls\n` : "");
  return `PML asks: may this run?\n${tools}\n` +
    `The question has ${length} characters: \`pml approve\` on a terminal shows it in full`;
}

/**
 * Returns the lines of one call. PML's own lines come first; text of others follows, each on one
 * escaped line.
 */
function block(subject: Subject): string {
  const { workspace, actor, facts = [] } = subject;
  const given = Object.entries(subject.arguments);
  return indented([
    ...identity(subject),
    `Workspace: ${quoted(workspace, Infinity)}`,
    ...(actor === "local" ? [] : [`Asked by: ${quoted(actor, Infinity)}`]),
    ...facts,
    given.length === 0 ? "Arguments: none" : "Arguments:",
    // Each argument is one line, because indenting deeply nested values would take quadratic space.
    ...given.flatMap(argumentLines),
  ]);
}

function argumentLines([name, value]: readonly [string, unknown]): readonly string[] {
  const line = `  ${JSON.stringify(name)}: ${JSON.stringify(value)}`;
  const isKey = containsKnownKey({ [name]: value });
  return isKey ? [line, "  ^ this argument looks like a key"] : [line];
}

function identity({ tool: id }: Subject): string[] {
  const { server, tool } = splitToolId(id);
  return [`Server: ${quoted(server)}`, `Tool: ${quoted(tool, 200)}`];
}

/** Indents lines by four blanks after an empty line, so that Markdown shows them unchanged. */
function indented(lines: readonly string[]): string {
  return `\n${lines.map((line) => `    ${unhidden(line)}\n`).join("")}`;
}

/**
 * Makes invisible characters visible: controls, characters that Unicode lets programs ignore,
 * unusual blanks, and long runs of blanks that could push text out of sight.
 */
export function unhidden(line: string): string {
  return visible(line, Infinity)
    .replace(/[\p{Default_Ignorable_Code_Point}\u{2800}]|(?! )\p{Zs}/gu, escaped)
    .replace(/(?<=\S {16}) +/g, (run) => escaped(" ").repeat(run.length));
}

function escaped(character: string): string {
  return `\\u{${character.codePointAt(0)?.toString(16)}}`;
}

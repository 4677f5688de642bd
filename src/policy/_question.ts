/**
 * Formats the approval question for the user. Text of servers and clients in it is escaped.
 *
 * @module
 */

import { quoted, textsIn, visible } from "../core/json.ts";
import { answerLabel } from "../protocol/answers.ts";
import { containsKnownKey } from "../core/key_kinds.ts";
import { mixedIn } from "../core/mixed_alphabets.ts";
import { splitToolId } from "../core/tool_id.ts";
import { metaKeysIn, shownMembers } from "./_members.ts";
import { isMark } from "./definition_texts.ts";
import type { Subject } from "./subject.ts";
import type { ToolSet } from "./tool_set.ts";

/** The maximum number of characters, after escaping, of a question that is sent to a client. */
export const LONGEST_QUESTION = 4_000;
/** The maximum number of calls that a short question names, and of tools in any first line. */
const [MOST_NAMED, MOST_IN_TITLE] = [10, 3];

/**
 * Returns the whole question, however long it is. For each call, `differing` contains the names of
 * the members that are its only difference from an earlier call.
 */
export function fullText(
  subjects: readonly Subject[],
  differing: readonly (readonly string[])[] = [],
): string {
  if (subjects.length === 1) {
    return `${titleOf(subjects)}\n${
      subjects.map((subject) => callText(subject, differing[0])).join("")
    }`;
  }
  const blocks = withoutRepeats(subjects).map((subject, index) =>
    `\nCall ${index + 1}\n${callText(subject, differing[index])}`
  );
  return `${titleOf(subjects)}\n${blocks.join("")}`;
}

/** Returns the first line, which some clients show alone. It names server and tool. */
function titleOf(subjects: readonly Subject[]): string {
  const tools = [...new Set(subjects.map(({ tool }) => tool))];
  const names = tools.slice(0, MOST_IN_TITLE).map((tool) => escapeInvisible(quoted(tool))).join(
    ", ",
  );
  const more = tools.length > MOST_IN_TITLE ? `, and ${tools.length - MOST_IN_TITLE} more` : "";
  if (subjects.length > 1) {
    return `PML asks: may these ${subjects.length} calls run? ${names}${more}`;
  }
  return `PML asks: may ${names} ${subjects[0]?.isSaved ? "be saved as a tool" : "run"}?`;
}

/** Returns a line about the effect of the "Always" rule. `reach` is where the rule applies. */
export function alwaysText(
  rule: string,
  subject: Pick<Subject, "tool" | "members"> | undefined,
  reach?: string,
): string {
  const where = reach === undefined ? "" : `: a rule ${escapeInvisible(reach)}`;
  if (rule !== subject?.tool) return `"Always" allows exactly these arguments${where}`;
  const others = subject.members === undefined ? "" : " and other members";
  return `"Always" allows this tool, with any arguments${others}${where}`;
}

/** Returns the lines about an answer for a session. */
export function sessionText(
  { rule, hasPages }: { readonly rule: string; readonly hasPages: boolean },
  subject: Pick<Subject, "tool"> | undefined,
): string {
  const what = rule === subject?.tool
    ? "this tool, with any arguments,"
    : "exactly these arguments";
  const pages = hasPages
    ? "It also covers calls of pages in your client (MCP Apps): PML cannot tell them from those of " +
      "the model\n"
    : "";
  return `"For this session" allows ${what} until your client disconnects, for at most 12 hours\n${pages}`;
}

/** Returns the lines about a set of tools: each name, and the texts that the user has not read. */
export function toolSetText({ reply, tools }: ToolSet): string {
  const label = answerLabel({ reply, tools: tools.length });
  const lines = tools.flatMap(({ id, note, lines = [] }) => [
    `${quoted(splitToolId(id).tool, 200)}${note === undefined ? "" : `: ${note}`}`,
    ...lines.map((line) => `  ${line}`),
  ]);
  return `\n"${label}" allows these, with any arguments:\n${indentLines(lines)}`;
}

/** Replaces lines that repeat the lines of an earlier call with a reference to that call. */
function withoutRepeats(subjects: readonly Subject[]): readonly Subject[] {
  const facts = indexesOfFirstEqual(subjects.map((subject) => subject.facts));
  const texts = indexesOfFirstEqual(subjects.map(({ definitionLines }) => definitionLines));
  return subjects.map((subject, index) => {
    const [sameFacts, sameTexts] = [facts[index], texts[index]];
    return {
      ...subject,
      ...sameFacts !== undefined && {
        facts: [`The same facts as in call ${sameFacts + 1}`],
      },
      ...sameTexts !== undefined && { definitionLines: [`as in call ${sameTexts + 1}`] },
    };
  });
}

/**
 * Returns for each list the index of the first equal list; undefined if no earlier list is equal.
 */
function indexesOfFirstEqual(
  lists: readonly (readonly string[] | undefined)[],
): readonly (number | undefined)[] {
  const firsts = new Map<string, number>();
  return lists.map((lines = [], index) => {
    const key = JSON.stringify(lines);
    const first = firsts.get(key) ?? index;
    firsts.set(key, first);
    return first === index || lines.length === 0 ? undefined : first;
  });
}

/** Returns a short question for calls whose full question is too long for the client. */
export function shortText(subjects: readonly Subject[], length: number): string {
  const lines = subjects.slice(0, MOST_NAMED).map((subject) => indentLines(identityLines(subject)));
  const more = subjects.length - lines.length;
  const tools = lines.join("") + (more > 0 ? `\nand ${more} more calls\n` : "");
  return `${titleOf(subjects)}\n${tools}\n` +
    `The question has ${length} characters: \`pml approve\` on a terminal shows it in full`;
}

/**
 * Returns the lines of one call: first PML's own lines, then texts of servers and clients. Each
 * argument, member and line of a definition is escaped and takes one line.
 */
function callText(subject: Subject, differing: readonly string[] = []): string {
  const { workspace, actor, facts = [], definitionLines = [] } = subject;
  const argumentEntries = Object.entries(subject.arguments);
  const members = shownMembers(subject);
  const isMethod = splitToolId(subject.tool).tool.startsWith("@");
  return indentLines([
    ...identityLines(subject),
    `Workspace: ${quoted(workspace, Infinity)}`,
    ...(actor === "local" ? [] : [`Asked by: ${quoted(actor, Infinity)}`]),
    ...facts.flatMap((fact) => [fact, ...remarkLines(mixedIn(fact))]),
    ...(definitionLines.some(isMark)
      ? ["Look closely at its description below: it is unusual"]
      : []),
    ...differenceLines(differing),
    // A question about all resources of a server is not about the arguments of one request.
    ...(argumentEntries.length > 0 ? ["Arguments:"] : isMethod ? [] : ["Arguments: none"]),
    // Each argument is one line, because indenting deeply nested values would take quadratic space.
    ...argumentEntries.flatMap(argumentLines),
    ...(members.length === 0 ? [] : ["Other members of the request, which the server gets:"]),
    ...members.flatMap(argumentLines),
    ...(definitionLines.length === 0
      ? []
      : ["Its server describes it to the model like this:", ...definitionLines]),
  ]);
}

function argumentLines([name, value]: readonly [string, unknown]): readonly string[] {
  const texts = [...textsIn({ [name]: value })];
  return [
    `  ${JSON.stringify(name)}: ${JSON.stringify(value)}`,
    ...(texts.some(containsKnownKey) ? ["  ^ this argument looks like a key"] : []),
    ...remarkLines([...new Set(texts.flatMap(mixedIn))]).map((line) => `  ${line}`),
  ];
}

function remarkLines(lines: readonly string[]): readonly string[] {
  return lines.map((remark) => `^ ${remark}`);
}

/** Returns the lines about differing members, and how to allow them. */
function differenceLines(differing: readonly string[]): readonly string[] {
  if (differing.length === 0) return [];
  const names = differing.map((name) => JSON.stringify(name)).join(", ");
  const keys = metaKeysIn(differing).map((key) => JSON.stringify(key)).join(", ");
  return [
    `Differs from an earlier call only in ${names}`,
    ...(keys === ""
      ? []
      : [`To let it pass without being shown, add ${keys} to client_meta in your config.yaml`]),
  ];
}

function identityLines({ tool: id }: Subject): string[] {
  const { server, tool } = splitToolId(id);
  return [`Server: ${quoted(server)}`, `Tool: ${quoted(tool, 200)}`];
}

/** Indents lines by four spaces after an empty line, so that Markdown shows them unchanged. */
function indentLines(lines: readonly string[]): string {
  return `\n${lines.map((line) => `    ${escapeInvisible(line)}\n`).join("")}`;
}

/**
 * Escapes invisible characters: control characters, characters that Unicode lets programs ignore,
 * unusual spaces, and long runs of spaces that could push text out of view.
 */
export function escapeInvisible(line: string): string {
  return visible(line, Infinity)
    .replace(
      /[\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}\u{2800}]|(?! )\p{Zs}/gu,
      toEscape,
    )
    .replace(/(?<=\S {16}) +/g, (run) => toEscape(" ").repeat(run.length));
}

function toEscape(character: string): string {
  return `\\u{${character.codePointAt(0)?.toString(16)}}`;
}

/**
 * Describes how a tool's definition changed, for the approval question.
 *
 * @module
 */

import { withEqualNumbers } from "../core/exact_number.ts";
import {
  isObject,
  type Json,
  type JsonObject,
  memberOf,
  objectOf,
  sortedJsonText,
  textOf,
} from "../core/json.ts";
import { type DifferencePart, textDifference } from "../core/text_difference.ts";
import { skillIn } from "../protocol/skills.ts";
import type { ToolDefinition } from "../protocol/tool.ts";

/** The length in characters from which changes are shown in pieces, not as two whole values. */
const LONG = 100;
/** If less than one fourth of the shorter text is common to both texts, both are shown whole. */
const LEAST_SAME = 4;
const SIGNS: Readonly<Record<DifferencePart["kind"], string>> = { same: " ", gone: "-", new: "+" };

/**
 * Returns the lines for each changed field: one or two, or the pieces of a long text. The lines are
 * never truncated, because the user would then approve text that is not shown.
 */
export function definitionChanges(was: ToolDefinition, is: ToolDefinition): readonly string[] {
  const skill = skillIn(is);
  if (skill !== undefined) return skillChanges(objectOf(was.skill), skill);
  const { inputSchema: before, outputSchema: beforeOut, ...rest } = was;
  const { inputSchema: now, outputSchema: nowOut, ...other } = is;
  return [
    ...changedLines(rest, other, ""),
    ...schemaChanges(before, now, "parameter"),
    ...schemaChanges(objectOf(beforeOut), objectOf(nowOut), "result"),
  ];
}

/** Returns lines for the changed fields and files of a skill. */
function skillChanges(was: DefinitionMembers, is: DefinitionMembers): readonly string[] {
  const { frontmatter: before, resources: files, ...rest } = was;
  const { frontmatter: now, resources: nowFiles, ...other } = is;
  return [
    ...changedLines(rest, other, ""),
    ...changedLines(objectOf(before), objectOf(now), ""),
    ...changedLines(filesOf(files), filesOf(nowFiles), "file "),
  ];
}

/** Returns the members of a skill's files, such as their digests, by the addresses of the files. */
function filesOf(resources: Json | undefined): DefinitionMembers {
  if (!Array.isArray(resources)) return resources === undefined ? {} : { resources };
  return Object.fromEntries(resources.map(objectOf).map(({ uri, ...file }) => [textOf(uri), file]));
}

function schemaChanges(was: JsonObject, is: JsonObject, what: string): readonly string[] {
  const { properties: before, ...rest } = was;
  const { properties: now, ...other } = is;
  return [
    ...changedLines(objectOf(before), objectOf(now), `${what} `),
    ...changedLines(rest, other, `${what}s, `),
  ];
}

type DefinitionMembers = Readonly<Record<string, Json | undefined>>;

function changedLines(
  was: DefinitionMembers,
  is: DefinitionMembers,
  prefix: string,
): readonly string[] {
  const keys = [...new Set([...Object.keys(was), ...Object.keys(is)])].sort();
  return keys.flatMap((key) => {
    const [before, now] = [valueAt(was, key), valueAt(is, key)];
    const name = `${prefix}${JSON.stringify(key)}`;
    if (before === now) return [];
    if (before === undefined) return [`${name} is new: ${now}`];
    if (now === undefined) return [`${name} is gone, was: ${before}`];
    const long = before.length >= LONG && now.length >= LONG
      ? longChanges(name, memberOf(was, key), memberOf(is, key))
      : undefined;
    return long ?? [`${name} was: ${before}`, `${name} is:  ${now}`];
  });
}

/**
 * Returns lines that show where two long values differ: the members of an object, and the words of
 * a text, which is shown whole. Returns undefined if they have too little in common.
 */
function longChanges(
  name: string,
  before: Json | undefined,
  now: Json | undefined,
): readonly string[] | undefined {
  if (isObject(before) && isObject(now)) return changedLines(before, now, `${name}, `);
  if (typeof before !== "string" || typeof now !== "string") return undefined;
  const parts = textDifference(before, now);
  const same = parts.filter(({ kind }) => kind === "same").map(({ text }) => text).join("");
  if (same.length * LEAST_SAME < Math.min(before.length, now.length)) return undefined;
  // Each piece is quoted on its own line, so that a text cannot look like the end of a piece.
  const lines = parts.flatMap(({ kind, text }) =>
    text.split(/(?<=\n)/).map((line) => `  ${SIGNS[kind]} ${JSON.stringify(line)}`)
  );
  return [`${name} has changed; - was there before, + is new:`, ...lines];
}

function valueAt(members: DefinitionMembers, key: string): string | undefined {
  const value = memberOf(members, key);
  return value === undefined ? undefined : sortedJsonText(withEqualNumbers(value));
}

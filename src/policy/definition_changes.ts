/**
 * Describes how a tool's definition changed, for the approval question.
 *
 * @module
 */

import { withEqualNumbers } from "../core/exact_number.ts";
import { type Json, type JsonObject, memberOf, objectOf, sorted, textOf } from "../core/json.ts";
import { skillIn } from "../protocol/skills.ts";
import type { ToolDefinition } from "../protocol/tool.ts";

/**
 * Returns one or two lines for each changed field. The lines are never truncated, because the user
 * would approve text that is not shown.
 */
export function definitionChanges(was: ToolDefinition, is: ToolDefinition): readonly string[] {
  const skill = skillIn(is);
  if (skill !== undefined) return skillChanges(objectOf(was.skill), skill);
  const { inputSchema: before, outputSchema: beforeOut, ...rest } = was;
  const { inputSchema: now, outputSchema: nowOut, ...other } = is;
  return [
    ...changed(rest, other, ""),
    ...schemaChanges(before, now, "parameter"),
    ...schemaChanges(objectOf(beforeOut), objectOf(nowOut), "result"),
  ];
}

/** Returns lines for the changed fields and files of a skill. */
function skillChanges(was: DefinitionMembers, is: DefinitionMembers): readonly string[] {
  const { frontmatter: before, resources: files, ...rest } = was;
  const { frontmatter: now, resources: nowFiles, ...other } = is;
  return [
    ...changed(rest, other, ""),
    ...changed(objectOf(before), objectOf(now), ""),
    ...changed(filesOf(files), filesOf(nowFiles), "file "),
  ];
}

/** Returns the digests of files by their addresses. */
function filesOf(resources: Json | undefined): DefinitionMembers {
  if (!Array.isArray(resources)) return resources === undefined ? {} : { resources };
  return Object.fromEntries(resources.map(objectOf).map(({ uri, ...file }) => [textOf(uri), file]));
}

function schemaChanges(was: JsonObject, is: JsonObject, what: string): readonly string[] {
  const { properties: before, ...rest } = was;
  const { properties: now, ...other } = is;
  return [
    ...changed(objectOf(before), objectOf(now), `${what} `),
    ...changed(rest, other, `${what}s, `),
  ];
}

type DefinitionMembers = Readonly<Record<string, Json | undefined>>;

function changed(was: DefinitionMembers, is: DefinitionMembers, what: string): readonly string[] {
  const keys = [...new Set([...Object.keys(was), ...Object.keys(is)])].sort();
  return keys.flatMap((key) => {
    const [before, now] = [valueAt(was, key), valueAt(is, key)];
    const name = `${what}${JSON.stringify(key)}`;
    if (before === now) return [];
    if (before === undefined) return [`${name} is new: ${now}`];
    if (now === undefined) return [`${name} is gone, was: ${before}`];
    return [`${name} was: ${before}`, `${name} is:  ${now}`];
  });
}

function valueAt(members: DefinitionMembers, key: string): string | undefined {
  const value = memberOf(members, key);
  return value === undefined ? undefined : sorted(withEqualNumbers(value));
}

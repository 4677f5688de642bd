/**
 * Describes how a tool's definition changed, for the approval question.
 *
 * @module
 */

import { withEqualNumbers } from "../core/exact_number.ts";
import { type Json, type JsonObject, memberOf, objectOf, sorted } from "../core/json.ts";
import type { ToolDefinition } from "../protocol/tool.ts";

/**
 * Returns one or two lines for each changed field. The lines are never truncated, because the user
 * would approve text that is not shown.
 */
export function definitionChanges(was: ToolDefinition, is: ToolDefinition): readonly string[] {
  const { inputSchema: before, outputSchema: beforeOut, ...rest } = was;
  const { inputSchema: now, outputSchema: nowOut, ...other } = is;
  return [
    ...changed(rest, other, ""),
    ...schemaChanges(before, now, "parameter"),
    ...schemaChanges(objectOf(beforeOut), objectOf(nowOut), "result"),
  ];
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

/**
 * Compares the results of a server about a skill with the entry of the skill that the checks used.
 *
 * @module
 */

import type { Call, Outcome } from "../protocol/call.ts";
import { PmlError } from "../core/errors.ts";
import { sha256 } from "../core/hash.ts";
import {
  type Json,
  type JsonObject,
  listOf,
  objectOf,
  quoted,
  sortedJsonText,
  textOf,
} from "../core/json.ts";
import { fileOf, skillIn } from "../protocol/skills.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { splitToolId } from "../core/tool_id.ts";

/** A request about a skill. The address is the one that the server uses. */
type SkillCall = Pick<Call, "id" | "method" | "arguments">;

/**
 * Returns why a result does not match the listed skill: another entry, or other bytes of a file.
 * Returns undefined if it matches, and for addresses that belong to no listed skill.
 */
export function findMismatch(
  definition: ToolDefinition,
  { method, arguments: { uri } }: SkillCall,
  outcome: Outcome,
): string | undefined {
  const skill = skillIn(definition);
  if (skill === undefined || outcome.kind !== "result") return undefined;
  const result = outcome.result as unknown as JsonObject; // plain JSON
  if (method === "skills/get") {
    const isOther = uri === skill.uri &&
      sortedJsonText(objectOf(result.skill)) !== sortedJsonText(objectOf(skill));
    return isOther ? "its entry is not the one in the list" : undefined;
  }
  if (method !== "resources/read" || !Array.isArray(skill.resources)) return undefined;
  const file = fileOf(skill, textOf(uri));
  if (file === undefined) return "the entry of the skill does not list it";
  const [content, ...others] = listOf(result.contents);
  const bytes = bytesOf(content);
  if (bytes === undefined || others.length > 0) return "it is not one content";
  const isSame = bytes.length === file.size && `sha256:${sha256(bytes)}` === file.digest;
  return isSame ? undefined : "its bytes do not match its digest";
}

/** Returns the error for a result that does not match the list of its server. */
export function skillMismatchError(
  { id, arguments: { uri } }: SkillCall,
  problem: string,
): PmlError {
  const { server } = splitToolId(id);
  const what = `Cannot use ${quoted(textOf(uri), 200)} of ${quoted(server)}: ${problem}`;
  return new PmlError("UPSTREAM_PROTOCOL", what, {
    hint: "Read `skills/list` again, or report this to the author of the server",
  });
}

/** Returns the bytes of a content; undefined if it has no text and no valid base64. */
function bytesOf(content: Json | undefined): Uint8Array | undefined {
  const { text, blob } = objectOf(content);
  if (typeof text === "string") return new TextEncoder().encode(text);
  try {
    return typeof blob === "string" ? Uint8Array.fromBase64(blob) : undefined;
  } catch {
    return undefined; // it is not base64
  }
}

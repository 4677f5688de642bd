/**
 * Converts results for clients of each revision, because clients refuse members of other revisions.
 *
 * @module
 */

import { hasAny, isObject, type Json, type JsonObject, objectOf, textOf } from "../core/json.ts";
import { memoized } from "../core/memo.ts";
import type { Client } from "./_clients.ts";

/** The first revisions that have certain kinds of content. */
const FIRST_REVISIONS: Readonly<Record<string, string>> = {
  audio: "2025-03-26",
  resource_link: "2025-06-18",
};

/** The members because of which a result may need a change. */
const CHECKED_MEMBERS = ["messages", "structuredContent", "ttlMs", "cacheScope"];

/** Returns the result of a server in the form of the client's revision. */
export function adaptResult({ isStateless, peer }: Client, result: JsonObject): JsonObject {
  return isStateless ? result : forOlderClient(result, peer.getNegotiatedProtocolVersion());
}

/** Returns the result of a server in the form of an older revision; by default the oldest. */
export function forOlderClient(result: JsonObject, revision = ""): JsonObject {
  const { content, messages } = result;
  const hasOnlyTexts = Array.isArray(content) &&
    content.every((block) => objectOf(block).type === "text");
  // Most results contain only texts, which every revision allows. Do not copy these results.
  if (hasOnlyTexts && !hasAny(result, CHECKED_MEMBERS)) return result;
  const { structuredContent, ttlMs: _, cacheScope: __, ...rest } = result;
  const convert = (block: Json) => toOlderBlock(block, revision);
  if (Array.isArray(messages)) {
    const converted = messages.map(objectOf).map((message) => ({
      ...message,
      content: convert(message.content ?? {}),
    }));
    return { ...rest, messages: converted };
  }
  const blocks = Array.isArray(content) ? content.map(convert) : [];
  const convertedResult = blocks.length > 0 ? { ...rest, content: blocks } : rest;
  if (structuredContent === undefined) return convertedResult;
  if (isObject(structuredContent)) return { ...convertedResult, structuredContent };
  // In these revisions, structured content is always an object.
  if (blocks.length > 0) return convertedResult;
  return { ...rest, content: [{ type: "text", text: JSON.stringify(structuredContent) }] };
}

/** Returns a tool in the form of older revisions, whose structured output must be an object. */
export const toolForOlderClient = memoized((tool: JsonObject): JsonObject => {
  const { outputSchema, ...rest } = tool;
  return outputSchema === undefined || objectOf(outputSchema).type === "object" ? tool : rest;
});

/** Returns a tool in the form of the stateless revision, which requests tasks in another way. */
export const toolForStatelessClient = memoized((tool: JsonObject): JsonObject => {
  if (!("execution" in tool)) return tool;
  const { execution: _, ...rest } = tool;
  return rest;
});

function toOlderBlock(block: Json, revision: string): Json {
  const { type, data, mimeType, uri, name } = objectOf(block);
  if (revision >= (FIRST_REVISIONS[textOf(type)] ?? "")) return block;
  return type === "audio"
    ? { type: "resource", resource: { uri: "audio:result", mimeType, blob: data } as JsonObject }
    : { type: "text", text: `${textOf(name)}: ${textOf(uri)}` };
}

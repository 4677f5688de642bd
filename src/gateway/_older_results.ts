/**
 * Converts results for clients of each revision, which refuse members of other revisions.
 *
 * @module
 */

import { hasAny, isObject, type Json, type JsonObject, objectOf, textOf } from "../core/json.ts";
import { memoized } from "../core/memo.ts";
import type { Client } from "./_clients.ts";

/** The revisions that brought kinds of content. */
const SINCE: Readonly<Record<string, string>> = {
  audio: "2025-03-26",
  resource_link: "2025-06-18",
};

/** The members of a result that clients of some revisions refuse. */
const NEWER = ["messages", "structuredContent", "ttlMs", "cacheScope"];

/** Returns the result of a server in the form that the revision of a client has. */
export function resultFor({ isStateless, peer }: Client, result: JsonObject): JsonObject {
  return isStateless ? result : forOlderClient(result, peer.getNegotiatedProtocolVersion());
}

/** Returns the result of a server in the form of an older revision. */
export function forOlderClient(result: JsonObject, revision = ""): JsonObject {
  const { content, messages } = result;
  const isPlain = Array.isArray(content) &&
    content.every((block) => objectOf(block).type === "text");
  // Most results are texts, which every revision has. They stay the same objects.
  if (isPlain && !hasAny(result, NEWER)) return result;
  const { structuredContent, ttlMs: _, cacheScope: __, ...rest } = result;
  const older = (block: Json) => olderBlock(block, revision);
  if (Array.isArray(messages)) {
    const texts = messages.map(objectOf).map((one) => ({
      ...one,
      content: older(one.content ?? {}),
    }));
    return { ...rest, messages: texts };
  }
  const blocks = Array.isArray(content) ? content.map(older) : [];
  const same = blocks.length > 0 ? { ...rest, content: blocks } : rest;
  if (structuredContent === undefined) return same;
  if (isObject(structuredContent)) return { ...same, structuredContent };
  // In these revisions, structured content is always an object.
  if (blocks.length > 0) return same;
  return { ...rest, content: [{ type: "text", text: JSON.stringify(structuredContent) }] };
}

/** Returns a tool in the form of older revisions: its structured output is an object. */
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

function olderBlock(block: Json, revision: string): Json {
  const { type, data, mimeType, uri, name } = objectOf(block);
  if (revision >= (SINCE[textOf(type)] ?? "")) return block;
  return type === "audio"
    ? { type: "resource", resource: { uri: "audio:result", mimeType, blob: data } as JsonObject }
    : { type: "text", text: `${textOf(name)}: ${textOf(uri)}` };
}

/**
 * Results as clients of each revision take them. They refuse what theirs does not have.
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

/** The members of a result that clients of some revision do not take. */
const NEWER = ["messages", "structuredContent", "ttlMs", "cacheScope"];

/** Returns the result of a server in the form that the revision of a client has. */
export function resultFor({ isModern, peer }: Client, result: JsonObject): JsonObject {
  return isModern ? result : forOlderClient(result, peer.getNegotiatedProtocolVersion());
}

/** Returns the result of a server as a client of a revision takes it. */
export function forOlderClient(result: JsonObject, revision = ""): JsonObject {
  const { content, messages } = result;
  const isPlain = Array.isArray(content) &&
    content.every((block) => objectOf(block).type === "text");
  // Most results are texts, which every revision takes. They stay the objects that they are.
  if (isPlain && !hasAny(result, NEWER)) return result;
  const { structuredContent, ttlMs: _, cacheScope: __, ...rest } = result;
  const older = (block: Json) => olderBlock(block, revision);
  if (Array.isArray(messages)) {
    const said = messages.map(objectOf).map((one) => ({
      ...one,
      content: older(one.content ?? {}),
    }));
    return { ...rest, messages: said };
  }
  const blocks = Array.isArray(content) ? content.map(older) : [];
  const same = blocks.length > 0 ? { ...rest, content: blocks } : rest;
  if (structuredContent === undefined) return same;
  if (isObject(structuredContent)) return { ...same, structuredContent };
  // They take no other structured content than an object.
  if (blocks.length > 0) return same;
  return { ...rest, content: [{ type: "text", text: JSON.stringify(structuredContent) }] };
}

/** Returns a tool as clients of older revisions take it: its structured output is an object. */
export const toolForOlderClient = memoized((tool: JsonObject): JsonObject => {
  const { outputSchema, ...rest } = tool;
  return outputSchema === undefined || objectOf(outputSchema).type === "object" ? tool : rest;
});

/** Returns a tool as clients of the newest revision take it: they ask for tasks otherwise. */
export const toolForModernClient = memoized((tool: JsonObject): JsonObject => {
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

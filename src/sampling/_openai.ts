/**
 * The wire format of OpenAI's Chat Completions API, which many other providers support, too.
 *
 * @module
 */

import {
  type Json,
  type JsonObject,
  listOf,
  objectOf,
  textOf,
  withoutUndefined,
} from "../core/json.ts";
import type { MessagePart, ModelMessage } from "./_request.ts";
import {
  type AnswerReader,
  Parts,
  resultBlocks,
  type Turn,
  unsupportedError,
  usageOf,
  type WireFormat,
} from "./_wire.ts";

const STOP_REASONS = new Map(Object.entries({
  stop: "endTurn",
  length: "maxTokens",
  tool_calls: "toolUse",
  content_filter: "contentFilter",
}));
/** The maximum number of stop sequences that the API accepts. */
const STOPS_MAX = 4;

/** The format of the Chat Completions API. */
export const OPENAI: WireFormat = {
  path: "/chat/completions",
  headers: (key) => ({ authorization: `Bearer ${key}` }),
  body: bodyOf,
  createReader: reader,
};

function bodyOf(turn: Turn, isCompatible: boolean): JsonObject {
  const { model, maxTokens, messages, systemPrompt, temperature, stopSequences, tools } = turn;
  if ((stopSequences?.length ?? 0) > STOPS_MAX) {
    throw unsupportedError("more than 4 stop sequences", "OpenAI");
  }
  const system = systemPrompt === undefined ? [] : [{ role: "system", content: systemPrompt }];
  return withoutUndefined({
    model,
    messages: [...system, ...messages.flatMap(messagesOf)],
    // All compatible servers support the older name `max_tokens`; only some support the newer name.
    [isCompatible ? "max_tokens" : "max_completion_tokens"]: maxTokens,
    temperature: temperature && Math.min(Math.max(temperature, 0), 2),
    stop: stopSequences,
    tools: tools?.map(({ name, description, inputSchema }) => ({
      type: "function",
      function: withoutUndefined({ name, description, parameters: inputSchema }),
    })),
    tool_choice: tools && turn.toolChoice,
    stream: true,
    stream_options: { include_usage: true },
  }) as JsonObject; // its parts are JSON
}

/** Returns one message for each tool result, then one with the rest of the content. */
function messagesOf({ role, content }: ModelMessage): readonly JsonObject[] {
  const results = content.filter(({ type }) => type === "tool_result").map((block) => ({
    role: "tool",
    tool_call_id: textOf(block.toolUseId),
    content: resultBlocks(block).map(({ type, text, mimeType }) =>
      type === "text" ? textOf(text) : `(an image, ${textOf(mimeType)}, which is not shown here)`
    ).join("\n"),
  }));
  const calls = content.filter(({ type }) => type === "tool_use").map(({ id, name, input }) => ({
    id: textOf(id),
    type: "function",
    function: { name: textOf(name), arguments: JSON.stringify(input) },
  }));
  const rest = content.filter(({ type }) => !type.startsWith("tool_")).map((block) =>
    partOf(block, role)
  );
  if (rest.length === 0 && calls.length === 0) return results;
  const messageContent: Json = rest.length === 0 ? null : rest;
  return [...results, {
    role,
    content: messageContent,
    ...(calls.length > 0 && { tool_calls: calls }),
  }];
}

function partOf({ type, text, data, mimeType }: MessagePart, role: string): JsonObject {
  if (type === "text") return { type: "text", text: textOf(text) };
  if (type !== "image" || role !== "user") {
    throw unsupportedError(`${type} of the ${role}`, "OpenAI");
  }
  return {
    type: "image_url",
    image_url: { url: `data:${textOf(mimeType)};base64,${textOf(data)}` },
  };
}

function reader(): AnswerReader {
  const parts = new Parts();
  let model = "";
  let stop: string | undefined;
  let counts: JsonObject = {};
  const take = (event: JsonObject) => {
    if (typeof event.model === "string") ({ model } = event as { readonly model: string });
    counts = { ...counts, ...objectOf(event.usage) };
    const choices = listOf(event.choices);
    let addedLength = 0;
    for (const choice of choices.map(objectOf)) {
      if (choice.index !== undefined && choice.index !== 0) continue;
      const { content, refusal, tool_calls: calls } = objectOf(choice.delta);
      parts.begin("text", { type: "text" });
      addedLength += parts.add("text", content ?? refusal);
      for (const call of listOf(calls).map(objectOf)) {
        const { name, arguments: args } = objectOf(call.function);
        const key = `call ${call.index}`;
        parts.begin(key, { type: "tool_use", id: textOf(call.id), name: textOf(name) });
        addedLength += parts.add(key, args);
      }
      if (typeof choice.finish_reason === "string") stop = choice.finish_reason;
    }
    return addedLength;
  };
  const end = () => {
    if (stop === undefined) return undefined;
    const usage = usageOf([counts.prompt_tokens], [counts.completion_tokens]);
    return { model, content: parts.blocks(), stopReason: STOP_REASONS.get(stop) ?? stop, usage };
  };
  return { take, end };
}

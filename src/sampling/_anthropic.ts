/**
 * The wire format of the Anthropic Messages API.
 *
 * @module
 */

import { type JsonObject, objectOf, textOf, withoutUndefined } from "../core/json.ts";
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
  end_turn: "endTurn",
  stop_sequence: "stopSequence",
  max_tokens: "maxTokens",
  model_context_window_exceeded: "maxTokens",
  tool_use: "toolUse",
}));
const CHOICES = { auto: "auto", required: "any", none: "none" } as const;

/** The format of the Messages API. */
export const ANTHROPIC: WireFormat = {
  path: "/v1/messages",
  headers: (key) => ({ "x-api-key": key, "anthropic-version": "2023-06-01" }),
  body: bodyOf,
  createReader: reader,
};

function bodyOf(turn: Turn): JsonObject {
  const { model, maxTokens, messages, systemPrompt, temperature, stopSequences, tools } = turn;
  const user = turn.metadata?.user_id;
  return withoutUndefined({
    model,
    max_tokens: maxTokens,
    messages: messages.map(messageOf),
    system: systemPrompt,
    temperature: temperature && Math.min(Math.max(temperature, 0), 1),
    stop_sequences: stopSequences,
    metadata: typeof user === "string" ? { user_id: user } : undefined,
    tools: tools?.map(({ name, description, inputSchema }) =>
      withoutUndefined({ name, description, input_schema: inputSchema })
    ),
    tool_choice: tools && turn.toolChoice && { type: CHOICES[turn.toolChoice] },
    stream: true,
  }) as JsonObject; // its parts are JSON
}

function messageOf({ role, content }: ModelMessage): JsonObject {
  return { role, content: content.map(blockOf) };
}

function blockOf(block: MessagePart): JsonObject {
  switch (block.type) {
    case "text":
      return { type: "text", text: textOf(block.text) };
    case "image": {
      const source = {
        type: "base64",
        media_type: textOf(block.mimeType),
        data: textOf(block.data),
      };
      return { type: "image", source };
    }
    case "tool_use": {
      const { id, name, input } = block;
      return { type: "tool_use", id: textOf(id), name: textOf(name), input: objectOf(input) };
    }
    case "tool_result": {
      const content = resultBlocks(block).map(blockOf);
      const isError = block.isError === true && { is_error: true };
      return { type: "tool_result", tool_use_id: textOf(block.toolUseId), content, ...isError };
    }
    default:
      throw unsupportedError(block.type, "Anthropic");
  }
}

function reader(): AnswerReader {
  const parts = new Parts();
  let model = "";
  let stopReason: string | undefined;
  let isComplete = false;
  let counts: JsonObject = {};
  const take = (event: JsonObject) => {
    const key = String(event.index);
    const { type } = event;
    if (type === "message_start") {
      const message = objectOf(event.message);
      model = textOf(message.model);
      counts = objectOf(message.usage);
    }
    if (type === "content_block_start") {
      const { type: kind, id, name, text } = objectOf(event.content_block);
      if (kind === "text") parts.begin(key, { type: "text" });
      if (kind === "tool_use") {
        parts.begin(key, { type: "tool_use", id: textOf(id), name: textOf(name) });
      }
      return parts.add(key, text);
    }
    if (type === "content_block_delta") {
      const { text, partial_json: json } = objectOf(event.delta);
      return parts.add(key, text ?? json);
    }
    if (type === "message_delta") {
      const { stop_reason: reason } = objectOf(event.delta);
      if (typeof reason === "string") stopReason = reason;
      counts = { ...counts, ...objectOf(event.usage) };
    }
    if (type === "message_stop") isComplete = true;
    return 0;
  };
  const end = () => {
    if (!isComplete || stopReason === undefined) return undefined;
    const { input_tokens: input, output_tokens: output } = counts;
    const { cache_creation_input_tokens: cacheWrites, cache_read_input_tokens: read } = counts;
    const usage = usageOf([input, cacheWrites, read], [output]);
    const shownReason = STOP_REASONS.get(stopReason) ?? stopReason;
    return { model, content: parts.blocks(), stopReason: shownReason, usage };
  };
  return { take, end };
}

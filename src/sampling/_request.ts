/**
 * Reads a request for a completion, as MCP defines it. Older servers write contents as plain texts
 * and name tools by patterns.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { defined, isObject, type JsonObject, objectOf } from "../core/json.ts";

/** A part of a message: text, image, audio, the use of a tool, or the result of that. */
export type Block = JsonObject & { readonly type: string };

/** A message of a conversation. */
export interface Message {
  readonly role: "user" | "assistant";
  readonly content: readonly Block[];
}

/** A tool that a model may use. */
export interface OfferedTool {
  readonly name: string;
  readonly description?: string;
  readonly inputSchema: JsonObject;
}

/** What a model is asked. */
export interface Prompt {
  readonly messages: readonly Message[];
  readonly systemPrompt?: string;
  readonly maxTokens?: number;
  readonly temperature?: number;
  readonly stopSequences?: readonly string[];
  readonly metadata?: JsonObject;
  readonly tools?: readonly OfferedTool[];
  readonly toolChoice?: "auto" | "required" | "none";
  /** Names of models, or parts of names, the preferred one first. */
  readonly hints: readonly string[];
  /** The patterns of tools that the server wants PML to run. */
  readonly patterns: readonly string[];
}

const MESSAGES_MAX = 1_000;
const TOOLS_MAX = 128;
const PATTERNS_MAX = 100;
const KINDS = ["text", "image", "audio", "tool_use", "tool_result"];
/** The names that both providers take. */
const TOOL_NAME = /^[A-Za-z0-9_-]{1,64}$/;

/** Reads a request. Throws BAD_REQUEST if it is none. */
export function promptOf(params: JsonObject): Prompt {
  const { messages, systemPrompt, maxTokens, temperature, stopSequences, toolChoice } = params;
  const { metadata, modelPreferences, tools } = params;
  check(Array.isArray(messages) && messages.length > 0, "messages", "an array of messages");
  check((messages as readonly unknown[]).length <= MESSAGES_MAX, "messages", "at most 1,000");
  check(isNone(systemPrompt) || typeof systemPrompt === "string", "systemPrompt", "a text");
  check(isNone(maxTokens) || isCount(maxTokens), "maxTokens", "a whole number from 1");
  check(isNone(temperature) || typeof temperature === "number", "temperature", "a number");
  check(isNone(stopSequences) || isTexts(stopSequences), "stopSequences", "an array of texts");
  const mode = isNone(toolChoice) ? undefined : objectOf(toolChoice).mode ?? toolChoice;
  check(
    mode === undefined || ["auto", "required", "none"].includes(String(mode)),
    "toolChoice.mode",
    "auto, required or none",
  );
  const { hints } = objectOf(modelPreferences);
  // Every field was checked.
  return {
    messages: (messages as readonly unknown[]).map(messageOf),
    hints: (Array.isArray(hints) ? hints : []).flatMap((hint) => {
      const { name } = objectOf(hint);
      return typeof name === "string" && name !== "" ? [name] : [];
    }),
    patterns: patternsOf(params),
    ...defined({
      systemPrompt: systemPrompt ?? undefined,
      maxTokens: maxTokens ?? undefined,
      temperature: temperature ?? undefined,
      stopSequences: stopSequences ?? undefined,
      toolChoice: mode,
      metadata: isObject(metadata) ? metadata : undefined,
      tools: toolsOf(tools),
    }),
  } as Prompt;
}

/** Returns the patterns of the tools that a request wants PML to run. */
export function patternsOf({ _meta, allowedToolPatterns }: JsonObject): readonly string[] {
  const said = allowedToolPatterns ?? objectOf(_meta).allowedToolPatterns;
  if (isNone(said)) return [];
  check(isTexts(said), "allowedToolPatterns", "an array of texts");
  const patterns = said as readonly string[]; // see above
  check(patterns.length <= PATTERNS_MAX, "allowedToolPatterns", `at most ${PATTERNS_MAX}`);
  check(patterns.every(({ length }) => length <= 200), "allowedToolPatterns", "of 200 characters");
  return patterns;
}

function messageOf(said: unknown, at: number): Message {
  const { role, content } = objectOf(said);
  const place = `messages[${at}]`;
  check(role === "user" || role === "assistant", `${place}.role`, "user or assistant");
  const given = typeof content === "string" ? { type: "text", text: content } : content;
  const blocks: readonly unknown[] = Array.isArray(given) ? given : [given];
  check(blocks.length > 0 && blocks.every(isBlock), `${place}.content`, `of ${KINDS.join(", ")}`);
  return { role, content: blocks } as Message; // see above
}

function isBlock(said: unknown): boolean {
  const { type, text, data, mimeType, id, name, input, toolUseId, content } = objectOf(said);
  switch (type) {
    case "text":
      return typeof text === "string";
    case "image":
    case "audio":
      return isBase64(data) && typeof mimeType === "string";
    case "tool_use":
      return typeof id === "string" && typeof name === "string" && isObject(input);
    case "tool_result":
      return typeof toolUseId === "string" && Array.isArray(content);
    default:
      return false;
  }
}

function toolsOf(tools: unknown): readonly OfferedTool[] | undefined {
  if (isNone(tools)) return undefined;
  check(Array.isArray(tools), "tools", "an array of tools");
  const all = tools as readonly unknown[]; // see above
  check(all.length <= TOOLS_MAX, "tools", `at most ${TOOLS_MAX}`);
  return all.map((tool, at) => {
    const { name, description, inputSchema } = objectOf(tool);
    check(typeof name === "string" && TOOL_NAME.test(name), `tools[${at}].name`, `${TOOL_NAME}`);
    check(isObject(inputSchema), `tools[${at}].inputSchema`, "a JSON Schema");
    const said = typeof description === "string" ? description : undefined;
    return { name, inputSchema, ...defined({ description: said }) } as OfferedTool; // see above
  });
}

function check(isRight: boolean, place: string, wanted: string): void {
  if (isRight) return;
  throw new PmlError("BAD_REQUEST", `Cannot sample: "${place}" is not ${wanted}`, {
    hint: "Write the request as `sampling/createMessage` of MCP defines it",
  });
}

function isNone(value: unknown): boolean {
  return value === undefined || value === null;
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) > 0;
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((one) => typeof one === "string");
}

function isBase64(value: unknown): boolean {
  return typeof value === "string" && /^[A-Za-z0-9+/]*={0,2}$/.test(value);
}

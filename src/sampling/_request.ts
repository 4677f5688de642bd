/**
 * Parses the `sampling/createMessage` requests of MCP. Older servers send content as plain text and
 * name tools by patterns.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { numberOf } from "../core/exact_number.ts";
import { GlobSet } from "../core/glob.ts";
import { isObject, type JsonObject, objectOf, textOf } from "../core/json.ts";
import { matches, type Pattern } from "../core/pattern.ts";
import { splitToolId, type ToolId, wireName } from "../core/tool_id.ts";

/** A part of a message: text, image, audio, a tool use, or a tool result. */
export type MessagePart = JsonObject & { readonly type: string };

/** A message of a conversation. */
export interface ModelMessage {
  readonly role: "user" | "assistant";
  readonly content: readonly MessagePart[];
}

/** A tool that a model may use. */
export interface OfferedTool {
  readonly name: string;
  readonly description?: string;
  readonly inputSchema: JsonObject;
}

/** A parsed request to a model. */
export interface Prompt {
  readonly messages: readonly ModelMessage[];
  readonly systemPrompt?: string;
  readonly maxTokens?: number;
  readonly temperature?: number;
  readonly stopSequences?: readonly string[];
  readonly metadata?: JsonObject;
  readonly tools?: readonly OfferedTool[];
  readonly toolChoice?: "auto" | "required" | "none";
  /** Names of models, or parts of names, in order of preference. */
  readonly hints: readonly string[];
  /** The patterns of tools that the server wants PML to run. */
  readonly patterns: readonly string[];
}

/** The maximum number of steps to compare tool names with the patterns of a request. */
const STEPS = 2_000_000;
const MESSAGES_MAX = 1_000;
const TOOLS_MAX = 128;
const PATTERNS_MAX = 100;
const MODES = ["auto", "required", "none"];
const COUNT = "a whole number from 1";
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;
/** The tool names that both providers accept. */
const TOOL_NAME = /^[A-Za-z0-9_-]{1,64}$/;

/** Parses a request. Throws BAD_REQUEST if it is invalid. */
export function parsePrompt(params: JsonObject): Prompt {
  const { messages, toolChoice, tools, metadata, modelPreferences } = params;
  const { systemPrompt, stopSequences } = params;
  const [maxTokens, temperature] = [params.maxTokens, params.temperature]
    .map((value) => numberOf(value) ?? value);
  const mode = isObject(toolChoice) ? toolChoice.mode : toolChoice;
  const all = listOf(messages, "messages", MESSAGES_MAX).map(parseMessage);
  check(all.length > 0, "messages", "a list with a message");
  check(isMissingOr(systemPrompt, isText), "systemPrompt", "a text");
  check(
    isMissingOr(maxTokens, (one) => Number.isSafeInteger(one) && Number(one) > 0),
    "maxTokens",
    COUNT,
  );
  check(isMissingOr(temperature, (one) => typeof one === "number"), "temperature", "a number");
  check(isMissingOr(stopSequences, isTexts), "stopSequences", "a list of texts");
  check(isMissingOr(mode, (one) => MODES.includes(String(one))), "toolChoice.mode", `of ${MODES}`);
  const { hints } = objectOf(modelPreferences);
  const fields = { systemPrompt, maxTokens, temperature, stopSequences, toolChoice: mode };
  const offered = listOf(tools ?? [], "tools", TOOLS_MAX).map(parseTool);
  const toolsField = { tools: offered.length > 0 && offered };
  const entries = Object.entries({ ...fields, ...toolsField }).filter(([, value]) => value);
  // Every field was checked.
  return {
    ...Object.fromEntries(entries),
    ...(temperature === 0 && { temperature }),
    ...(isObject(metadata) && { metadata }),
    messages: all,
    hints: (Array.isArray(hints) ? hints : []).map((hint) => textOf(objectOf(hint).name))
      .filter(Boolean),
    patterns: parsePatterns(params),
  } as unknown as Prompt;
}

/** Returns the patterns of the tools that a request wants PML to run. */
export function parsePatterns({ _meta, allowedToolPatterns }: JsonObject): readonly string[] {
  const place = "allowedToolPatterns";
  const value = allowedToolPatterns ?? objectOf(_meta)[place] ?? [];
  const patterns = listOf(value, place, PATTERNS_MAX);
  check(patterns.every((one) => isText(one) && one.length <= 200), place, "a list of short texts");
  return patterns as readonly string[]; // see above
}

/**
 * Returns a test for tools that match a pattern of each list. Servers use globs of tool names, such
 * as `git_*`, `git__*`, `git:*` or `*`.
 */
export function createToolFilter(
  patterns: readonly string[],
  allowed: readonly Pattern[],
): (id: ToolId) => boolean {
  const globs = new GlobSet(patterns);
  // All tools share these steps, so a request with very many patterns may match fewer tools.
  const steps = { remaining: STEPS };
  const isWanted = (name: string) => {
    const matchingGlobs = globs.findMatches(name, { steps });
    return matchingGlobs !== undefined && matchingGlobs.size > 0;
  };
  return (id) => {
    // The user's list is the limit for every request of a server.
    // guard: sampling-bound
    if (!allowed.some((pattern) => matches(pattern, id))) return false;
    return [id, wireName(id), splitToolId(id).tool].some(isWanted);
  };
}

function parseMessage(message: unknown, at: number): ModelMessage {
  const { role, content } = objectOf(message);
  const place = `messages[${at}]`;
  check(role === "user" || role === "assistant", `${place}.role`, "user or assistant");
  const list = typeof content === "string" ? { type: "text", text: content } : content;
  const blocks: readonly unknown[] = Array.isArray(list) ? list : [list];
  check(blocks.length > 0 && blocks.every(isBlock), `${place}.content`, "content of MCP");
  return { role, content: blocks } as ModelMessage; // see above
}

function isBlock(block: unknown): boolean {
  const { type, text, data, mimeType, id, name, input, toolUseId, content } = objectOf(block);
  switch (type) {
    case "text":
      return isText(text);
    case "image":
    case "audio":
      return isText(mimeType) && isText(data) && BASE64.test(data);
    case "tool_use":
      return isText(id) && isText(name) && isObject(input);
    default:
      return type === "tool_result" && isText(toolUseId) && Array.isArray(content);
  }
}

function parseTool(tool: unknown, at: number): OfferedTool {
  const { name, description, inputSchema } = objectOf(tool);
  check(isText(name) && TOOL_NAME.test(name), `tools[${at}].name`, `${TOOL_NAME}`);
  check(isObject(inputSchema), `tools[${at}].inputSchema`, "a JSON Schema");
  return { name, inputSchema, ...(isText(description) && { description }) } as OfferedTool; // see above
}

function check(isRight: boolean, place: string, expected: string): void {
  if (isRight) return;
  throw new PmlError("BAD_REQUEST", `Cannot sample: "${place}" is not ${expected}`, {
    hint: "Write the request as `sampling/createMessage` of MCP",
  });
}

function listOf(value: unknown, place: string, most: number): readonly unknown[] {
  check(Array.isArray(value) && value.length <= most, place, `a list of at most ${most}`);
  return value as readonly unknown[]; // see above
}

function isMissingOr(value: unknown, test: (value: unknown) => boolean): boolean {
  return value === undefined || value === null || test(value);
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every(isText);
}

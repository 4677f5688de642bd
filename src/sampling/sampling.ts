/**
 * Answers `sampling/createMessage` with a provider and the user's own key: sends the prompt to the
 * model, runs the tools that the model calls, and sends their results to the model.
 *
 * @module
 */

import type { Redactor } from "../audit/redact.ts";
import type { SamplingSettings } from "../config/sampling.ts";
import type { ToolResult } from "../protocol/call.ts";
import { asPmlError, PmlError } from "../core/errors.ts";
import type { Fetch } from "../core/fetch.ts";
import { type JsonObject, textOf, visible, withoutUndefined } from "../core/json.ts";
import { tokensOf } from "../core/tokens.ts";
import type { ToolId } from "../core/tool_id.ts";
import { type DailyUse, moneyOf, SamplingBudget, shownMoney } from "./_budget.ts";
import { type AnswerProgress, askProvider, providerHost } from "./_provider.ts";
import {
  type MessagePart,
  type ModelMessage,
  type OfferedTool,
  parsePrompt,
  type Prompt,
} from "./_request.ts";
import { BAD_INPUT, type ModelAnswer, resultBlocks, type Turn, type Usage } from "./_wire.ts";

export { createToolFilter, parsePatterns } from "./_request.ts";

/** A tool that PML runs for a model. */
export interface RunnableTool extends OfferedTool {
  readonly id: ToolId;
}

/** The journal record of one request to a provider. It contains no text of the request. */
export interface SampledEvent {
  readonly host: string;
  readonly model: string;
  readonly turn: number;
  readonly input: number;
  readonly output: number;
  readonly money?: number;
  readonly ms: number;
  /** The code of the error if the request failed. */
  readonly code?: string;
}

/** An approved request of a server, with the tools that the model may call. */
export interface SamplingRequest {
  readonly settings: SamplingSettings;
  readonly key: string;
  readonly signal: AbortSignal;
  /**
   * Throws if the user has changed or removed the provider since the approval. Called before each
   * turn.
   */
  assertCurrent(): void;
  /** Returns the tools that match these patterns and that the model may use. */
  tools(patterns: readonly string[]): Promise<readonly RunnableTool[]>;
  /** Calls a tool, with all checks. */
  run(id: ToolId, args: JsonObject): Promise<ToolResult>;
  /** Reports the progress of the answer to the client of the call. */
  report(message: string): void;
  /** Writes one request to the provider to the journal. */
  record(event: SampledEvent): void;
}

/** The maximum length of a tool's result that the model receives, in characters. */
const RESULT_MAX = 50_000;
/**
 * The maximum number of characters of images, from all tools, that a model receives for one
 * request.
 */
const IMAGE_CHARACTERS_MAX = 10_000_000;
/** The maximum number of tool calls of a model in one turn. */
const USES_MAX = 16;
/** The tokens of longer texts are estimated from the length only. */
const ESTIMATED_MAX = 50_000;
/** The estimated tokens of an image or a sound. */
const MEDIA_TOKENS = 2_000;
const REPORT_MS = 500;

/** Answers requests for completions. */
export class Sampling {
  readonly #budget: SamplingBudget;
  readonly #fetch: Fetch;
  readonly #redactor: Pick<Redactor, "clean">;

  /** Creates an instance with its budget in the PML home. Sends nothing yet. */
  constructor(home: string, fetch: Fetch, redactor: Pick<Redactor, "clean">) {
    this.#budget = new SamplingBudget(home);
    this.#fetch = fetch;
    this.#redactor = redactor;
  }

  /** Parses a request. Throws BAD_REQUEST if it is invalid. */
  parse(params: JsonObject): Prompt {
    return parsePrompt(params);
  }

  /** Returns the facts that the user needs to approve a request, one per line. */
  describe(prompt: Prompt, settings: SamplingSettings): readonly string[] {
    const { provider, key, prices, maxTurns, tools } = settings;
    const turn = turnOf(prompt, settings);
    const input = estimateOf(turn);
    const pmlRunsTools = runsTools(prompt) && tools.length > 0;
    const output = pmlRunsTools ? settings.maxTokens : turn.maxTokens;
    const money = shownMoney(moneyOf({ input: pmlRunsTools ? 0 : input, output }, settings));
    const size = pmlRunsTools
      ? `In the first of at most ${maxTurns} turns, it sends about ${input} tokens and the tool ` +
        "definitions; each later turn sends these and all earlier messages again; all answers " +
        `together have at most ${output} tokens`
      : `It sends about ${input} tokens, and the answer has at most ${output} tokens`;
    const cost = pmlRunsTools
      ? `, which cost at most ${money}; the sent text costs extra`
      : `; this costs about ${money}`;
    return [
      `It sends this text to ${turn.model} at ${
        providerHost(settings)
      } (${provider}), with your ${key}`,
      prices === undefined ? size : `${size}${cost}`,
      ...(runsTools(prompt) ? [toolsLine(prompt, settings)] : []),
    ];
  }

  /** Returns the use of today. */
  today(): DailyUse {
    return this.#budget.today();
  }

  /** Answers an approved request. */
  async answer(prompt: Prompt, request: SamplingRequest): Promise<JsonObject> {
    const { settings } = request;
    const { maxTurns } = settings;
    await this.#budget.countRequest(settings);
    const tools = runsTools(prompt) ? await request.tools(prompt.patterns) : [];
    const messages = [...prompt.messages];
    let remainingTokens = settings.maxTokens;
    const allowance = { remaining: IMAGE_CHARACTERS_MAX };
    for (let turnNumber = 1;; turnNumber++) {
      const turn = turnOf({ ...prompt, messages }, settings, {
        tools,
        remaining: remainingTokens,
        turnNumber,
      });
      const pending = this.#ask(turn, request, turnNumber);
      const answer = await pending.catch((error) => {
        if (turnNumber > 1 && isLimitError(error)) return asPmlError(error);
        throw error;
      });
      if (answer instanceof PmlError) return stoppedResult(messages, turn.model, answer.message);
      const toolUses = answer.content.filter(({ type }) => type === "tool_use");
      if (tools.length === 0 || toolUses.length === 0) return resultOf(answer);
      // guard: sampling-tokens
      remainingTokens -= answer.usage?.output ?? estimateOf(answer.content);
      messages.push({ role: "assistant", content: answer.content });
      // guard: sampling-turns
      if (turnNumber === maxTurns) {
        return stoppedResult(messages, answer.model, turnsText(turnNumber));
      }
      if (remainingTokens <= 0) {
        const why = `it used ${settings.maxTokens} tokens (sampling.max_tokens)`;
        return stoppedResult(messages, answer.model, why);
      }
      const results: MessagePart[] = [];
      for (const [index, use] of toolUses.entries()) {
        request.report(`turn ${turnNumber} of ${maxTurns}: ${visible(textOf(use.name), 100)}`);
        const isAllowed = index < USES_MAX;
        results.push(
          isAllowed
            ? await runToolUse(use, tools, { request, allowance })
            : errorResult(use, "Too many at once"),
        );
      }
      messages.push({ role: "user", content: results });
    }
  }

  async #ask(turn: Turn, request: SamplingRequest, turnNumber: number): Promise<ModelAnswer> {
    const { settings, key, signal } = request;
    // guard: late-turn
    request.assertCurrent();
    const host = providerHost(settings);
    const most = { input: estimateOf(turn), output: turn.maxTokens };
    // guard: sampling-reserved
    await this.#budget.reserve(most, settings);
    const since = performance.now();
    const recordUse = (used: Usage, code?: string) =>
      request.record({
        host,
        model: turn.model,
        turn: turnNumber,
        ...used,
        ms: Math.round(performance.now() - since),
        ...withoutUndefined({ code, money: settings.prices && moneyOf(used, settings) }),
      });
    const [fetch, redactor] = [this.#fetch, this.#redactor];
    const progress = new TurnProgress(request, turnNumber);
    // If the actual use cannot be written, the reservation stays counted.
    const settle = (used: Usage) =>
      this.#budget.settle(used, { most, settings }).catch(() => undefined);
    try {
      const answer = await askProvider(turn, { settings, key, fetch, signal, redactor, progress });
      const output = estimateOf(answer.content);
      const used = answer.usage ?? { input: most.input, output };
      recordUse(used);
      await settle(used);
      return answer;
    } catch (error) {
      const { code, detail } = asPmlError(error);
      // A rejected or unsent request used no tokens. An interrupted request may have used all
      // tokens.
      const isUsed = detail?.status === undefined && detail?.may_have_run !== false;
      const used = isUsed ? most : { input: 0, output: 0 };
      recordUse(used, signal.aborted ? "CANCELLED" : code);
      if (!isUsed) await settle(used);
      throw error;
    }
  }
}

/** Reports the progress of one turn, at most once in `REPORT_MS`. */
class TurnProgress implements AnswerProgress {
  readonly #request: SamplingRequest;
  readonly #turnNumber: number;
  #shownAt = -Infinity;

  constructor(request: SamplingRequest, turnNumber: number) {
    this.#request = request;
    this.#turnNumber = turnNumber;
  }

  onGrowth(characters: number): void {
    if (performance.now() - this.#shownAt < REPORT_MS) return;
    this.#shownAt = performance.now();
    const { settings } = this.#request;
    const turn = `turn ${this.#turnNumber} of ${settings.maxTurns}`;
    this.#request.report(`${providerHost(settings)}: ${characters} characters, ${turn}`);
  }

  onBusy(message: string): void {
    this.#request.report(message);
  }
}

/** Returns whether PML runs tools for the model. A server that sends tools runs them itself. */
function runsTools({ tools, patterns }: Prompt): boolean {
  return tools === undefined && patterns.length > 0;
}

function turnOf(
  { hints, patterns: _, ...prompt }: Prompt,
  { model, models, maxTokens }: SamplingSettings,
  { tools, remaining, turnNumber }: {
    readonly tools: readonly OfferedTool[];
    readonly remaining: number;
    readonly turnNumber: number;
  } = { tools: [], remaining: maxTokens, turnNumber: 1 },
): Turn {
  const modelNames = [model, ...models];
  const matches = hints.map((hint) => modelNames.find((one) => one.includes(hint)));
  // A required tool choice applies to the first turn only; otherwise the turns could not end.
  const { toolChoice = "auto" } = prompt;
  const choice = turnNumber > 1 && toolChoice === "required" ? "auto" : toolChoice;
  return {
    ...prompt,
    model: matches.find((one) => one !== undefined) ?? model,
    maxTokens: Math.min(prompt.maxTokens ?? maxTokens, remaining),
    ...(tools.length > 0 && { tools, toolChoice: choice }),
  };
}

function toolsLine({ patterns }: Prompt, { tools }: SamplingSettings): string {
  const list = patterns.map((one) => visible(one, 100)).join(", ");
  if (tools.length === 0) {
    return `It wants tools that match ${list}; sampling.allowed_tool_patterns in config.yaml ` +
      "allows none";
  }
  const allowed = tools.map(({ text }) => text).join(", ");
  return `It wants tools that match ${list}; the model may call only those of them that ` +
    `sampling.allowed_tool_patterns in config.yaml allows (${allowed}), and your rules judge ` +
    "each call";
}

/** Estimates the tokens of a request or of an answer. */
function estimateOf(request: Turn | readonly MessagePart[]): number {
  const blocks = "messages" in request
    ? request.messages.flatMap(({ content }) => content)
    : request;
  const parts = blocks.flatMap((one) => one.type === "tool_result" ? resultBlocks(one) : [one]);
  // In other blocks, `data` is sent as text.
  const media = new Set<unknown>(parts.filter(({ type }) => type === "image" || type === "audio"));
  const text = JSON.stringify(
    request,
    (_, value) => media.has(value) ? { ...value, data: undefined } : value,
  );
  const tokens = text.length > ESTIMATED_MAX ? Math.ceil(text.length / 3) : tokensOf(text);
  return tokens + media.size * MEDIA_TOKENS;
}

/** Runs a tool for a model. Returns errors to the model, but throws APPROVAL_REQUIRED. */
async function runToolUse(
  use: MessagePart,
  tools: readonly RunnableTool[],
  { request, allowance }: {
    readonly request: SamplingRequest;
    readonly allowance: ImageAllowance;
  },
): Promise<MessagePart> {
  const tool = tools.find(({ name }) => name === use.name);
  if (tool === undefined) return errorResult(use, "You have no tool of this name");
  // guard: sampling-arguments
  if (use[BAD_INPUT] !== undefined) return errorResult(use, "The arguments are not a JSON object");
  try {
    // Each member was validated or parsed from JSON.
    const result = await request.run(tool.id, use.input as JsonObject);
    return toolResult(use, result as unknown as JsonObject, allowance);
  } catch (error) {
    request.signal.throwIfAborted();
    const { code, message, hint } = asPmlError(error);
    // guard: sampling-person
    if (code === "APPROVAL_REQUIRED") throw error;
    return errorResult(use, `${code}: ${message}${hint === undefined ? "" : `. ${hint}`}`);
  }
}

function errorResult(use: MessagePart, why: string): MessagePart {
  return toolResult(use, { content: [{ type: "text", text: why }], isError: true });
}

/** The characters of images that a model may still receive. */
interface ImageAllowance {
  remaining: number;
}

function toolResult(
  { id }: MessagePart,
  { isError, ...result }: JsonObject,
  allowance: ImageAllowance = { remaining: 0 },
): MessagePart {
  let remaining = RESULT_MAX;
  const content = resultBlocks(result).map((block) => {
    if (block.type === "image") {
      const { length } = textOf(block.data);
      if (length > allowance.remaining) {
        return { type: "text", text: "(an image that is too large)" };
      }
      // guard: sampling-pictures
      allowance.remaining -= length;
      return block;
    }
    const text = textOf(block.text);
    const part = text.slice(0, Math.max(remaining, 0));
    remaining -= text.length;
    const cut = part.length < text.length ? `… (${text.length - part.length} more)` : "";
    return { type: "text", text: part + cut };
  });
  const failed = isError === true && { isError };
  return { type: "tool_result", toolUseId: textOf(id), content, ...failed };
}

function isLimitError(error: unknown): boolean {
  return error instanceof PmlError && error.detail?.cap !== undefined;
}

function turnsText(turns: number): string {
  return `the model was asked ${turns} times (sampling.max_turns)`;
}

/** Returns the result if a limit ended the turns: the model's last text and the reason. */
function stoppedResult(messages: readonly ModelMessage[], model: string, why: string): JsonObject {
  const last = messages.findLast(({ role }) => role === "assistant");
  const content = (last?.content ?? []).filter(({ type }) => type === "text");
  return resultOf({ model, content, stopReason: "maxTurns", usage: undefined }, why);
}

function resultOf({ model, content, stopReason }: ModelAnswer, why?: string): JsonObject {
  const bad = content.find((block) => block[BAD_INPUT] !== undefined);
  if (bad !== undefined) {
    const message = "Cannot sample: the model wrote arguments that are not a JSON object";
    throw new PmlError("UPSTREAM_PROTOCOL", message, { hint: "Ask again" });
  }
  const note = `[PML stopped here: ${why}; raise it in config.yaml]`;
  const all = why === undefined ? content : [...content, { type: "text", text: note }];
  const isText = all.every(({ type }) => type === "text");
  const text = all.map((block) => textOf(block.text)).join(why === undefined ? "" : "\n");
  return {
    role: "assistant",
    model: visible(model, 200),
    // Servers of older revisions accept only one block.
    content: isText ? { type: "text", text } : all,
    stopReason: why === undefined ? stopReason : "maxTurns",
  };
}

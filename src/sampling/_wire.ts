/**
 * The types and functions that the formats of both providers share: they build a request from a
 * prompt, and an answer from events.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { parseExact } from "../core/exact_json.ts";
import { boundedJson } from "../core/json_bounds.ts";
import { isObject, type JsonObject, objectOf } from "../core/json.ts";
import type { MessagePart, Prompt } from "./_request.ts";

/** One request to a model. */
export interface Turn extends Omit<Prompt, "hints" | "patterns"> {
  readonly model: string;
  readonly maxTokens: number;
}

/** The numbers of used tokens of requests and of answers. */
export interface Usage {
  readonly input: number;
  readonly output: number;
}

/** The answer of a model. */
export interface ModelAnswer {
  readonly model: string;
  readonly content: readonly MessagePart[];
  /** `endTurn`, `stopSequence`, `maxTokens`, `toolUse`, or the provider's own word. */
  readonly stopReason: string;
  /** The usage that the provider reported; undefined without one. */
  readonly usage: Usage | undefined;
}

/** Builds an answer from events. */
export interface AnswerReader {
  /** Adds the data of one event. Returns the number of added characters. */
  take(event: JsonObject): number;
  /** Returns the answer; undefined if the stream ended early. */
  end(): ModelAnswer | undefined;
}

/** The format of a provider. */
export interface WireFormat {
  readonly path: string;
  headers(key: string): Readonly<Record<string, string>>;
  body(turn: Turn, isCompatible: boolean): JsonObject;
  /** Returns a new reader for one answer. */
  createReader(): AnswerReader;
}

/** The key that marks a tool use whose arguments are not a JSON object. */
export const BAD_INPUT = "pml/bad-input";

/** The maximum number of parts of one answer. */
const BLOCKS_MAX = 256;

/** The parts of an answer, by position. Texts and arguments arrive in pieces. */
export class Parts {
  readonly #parts = new Map<string, { block: MessagePart; pieces: string[] }>();

  /** Starts a part if it has not started. */
  begin(key: string, block: MessagePart): void {
    if (this.#parts.has(key)) return;
    if (this.#parts.size >= BLOCKS_MAX) throw new Error("it has too many parts");
    this.#parts.set(key, { block, pieces: [] });
  }

  /** Appends a piece to a part that has started. Returns the length of the piece. */
  add(key: string, piece: unknown): number {
    if (typeof piece !== "string") return 0;
    this.#parts.get(key)?.pieces.push(piece);
    return piece.length;
  }

  /** Returns the complete parts. */
  blocks(): readonly MessagePart[] {
    return [...this.#parts.values()].flatMap(({ block, pieces }): readonly MessagePart[] => {
      const text = pieces.join("");
      if (block.type === "text") return text === "" ? [] : [{ type: "text", text }];
      return [{ ...block, ...inputOf(text) }];
    });
  }
}

/** Returns the number of used tokens; undefined unless the provider reports valid counts. */
export function usageOf(
  inputs: readonly unknown[],
  outputs: readonly unknown[],
): Usage | undefined {
  const [input, output] = [inputs, outputs].map(countOf);
  return input === undefined || output === undefined ? undefined : { input, output };
}

function countOf(values: readonly unknown[]): number | undefined {
  const counts = values.filter((value) => value !== undefined && value !== null);
  const isSane = counts.length > 0 &&
    counts.every((value) => Number.isSafeInteger(value) && Number(value) >= 0);
  return isSane
    ? Math.min(counts.reduce<number>((sum, one) => sum + Number(one), 0), 1e9)
    : undefined;
}

/** Returns the content of a tool's result as blocks of text and images. */
export function resultBlocks({ content, structuredContent }: JsonObject): readonly MessagePart[] {
  const blocks = Array.isArray(content) && content.length > 0 ? content : [structuredContent ?? ""];
  return blocks.map((block) => {
    const { type } = objectOf(block);
    const isPlain = type === "text" || type === "image";
    // Text and image blocks have the fields of `MessagePart`.
    return isPlain ? block as MessagePart : { type: "text", text: JSON.stringify(block) };
  });
}

/** Returns the error for content that a provider does not support. */
export function unsupportedError(what: string, provider: string): PmlError {
  return new PmlError("BAD_REQUEST", `Cannot sample: ${provider} does not support ${what}`, {
    hint: "Leave it out, or use another provider in `sampling` of config.yaml",
    detail: { may_have_run: false },
  });
}

function inputOf(text: string): { readonly input: JsonObject; readonly [BAD_INPUT]?: string } {
  const input = boundedJson(new TextEncoder().encode(text || "{}"), parseExact);
  if (isObject(input)) return { input: input as JsonObject };
  // Keeps the model's text for the error.
  return { input: {}, [BAD_INPUT]: text.slice(0, 200) };
}

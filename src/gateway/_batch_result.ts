/**
 * Writes the result of a batch: for each call a line with the name of its tool, and then the content
 * blocks of its result. The line contains a random mark, so that the result of one call cannot
 * imitate the result of another call.
 *
 * @module
 */

import { parseExact } from "../core/exact_json.ts";
import {
  type Json,
  type JsonObject,
  sortedJsonText,
  visible,
  withoutUndefined,
} from "../core/json.ts";
import { type ContentBlock, textResult, type ToolResult } from "../protocol/call.ts";
import { errorBody, errorResult } from "../protocol/failures.ts";
import type { BatchItem } from "../workflow/batch.ts";

/**
 * The key in `_meta` under which programs find the list of calls, with the number of content blocks
 * of each call.
 */
const ITEMS_KEY = "pml/batch";
/** The maximum length of the name of a tool and of the id of a call, in characters. */
const NAME_MAX = 100;
/** 32 characters, so that each character of a mark has five random bits. */
const MARK_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567";
const MARK_LENGTH = 8;

/** Returns the result of a batch. It is an error if all its calls failed. */
export function batchResult(items: readonly BatchItem[]): ToolResult {
  // The mark is created after the last call, so no result can contain it.
  const mark = newMark();
  const results = items.map(({ result, error }) => result ?? errorResult(error));
  const blocks = results.map(blocksOf);
  const lines = items.map((item, index) => {
    const intro = index === 0 && items.length > 1
      ? `Each of the ${items.length} results begins with a line that contains ${mark}\n`
      : "";
    const name = `${visible(item.tool, NAME_MAX)}${idText(item)}`;
    const failed = results[index]?.isError === true ? " failed" : "";
    return `${intro}[${mark} ${index + 1}/${items.length}] ${name}${failed}`;
  });
  const callFacts = items.map(({ id, tool, error }, index) =>
    withoutUndefined({
      id,
      tool,
      blocks: blocks[index]?.length,
      isError: results[index]?.isError,
      error: error && errorBody(error) as unknown as JsonObject,
    })
  );
  const isError = items.length > 0 && results.every((result) => result.isError === true) ||
    undefined;
  return {
    content: lines.flatMap((line, index) => [...textResult(line).content, ...blocks[index] ?? []]),
    ...withoutUndefined({ isError }),
    _meta: { [ITEMS_KEY]: callFacts },
  };
}

function idText({ id }: BatchItem): string {
  return id === undefined ? "" : ` (${visible(id, NAME_MAX)})`;
}

/** Returns the blocks of a result, with the structured content as a text if no block has it. */
function blocksOf({ content, structuredContent, isError }: ToolResult): readonly ContentBlock[] {
  const isShown = structuredContent === undefined || isError === true && content.length > 0 ||
    content.some((block) => isJsonTextOf(block, structuredContent as Json));
  return isShown ? content : [...content, ...textResult(JSON.stringify(structuredContent)).content];
}

/** Returns whether a block is the JSON text of a value. */
function isJsonTextOf({ type, text }: ContentBlock, value: Json): boolean {
  if (type !== "text" || typeof text !== "string") return false;
  if (text === JSON.stringify(value)) return true;
  if (!/^\s*[[{]/.test(text)) return false;
  try {
    return sortedJsonText(parseExact(text) as Json) === sortedJsonText(value);
  } catch {
    return false; // other text
  }
}

function newMark(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(MARK_LENGTH));
  // guard: batch-mark
  return Array.from(bytes, (byte) => MARK_ALPHABET[byte % MARK_ALPHABET.length]).join("");
}

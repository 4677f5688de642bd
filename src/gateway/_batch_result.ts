/**
 * The result of a batch: the content blocks of each call, after a line that names the call. The line
 * contains a random mark, so that the result of one call cannot imitate that of another.
 *
 * @module
 */

import { parseExact } from "../core/exact_json.ts";
import { defined, type Json, type JsonObject, sorted, visible } from "../core/json.ts";
import { type ContentBlock, textResult, type ToolResult } from "../protocol/call.ts";
import { errorBody, errorResult } from "../protocol/failures.ts";
import type { BatchItem } from "../workflow/batch.ts";

/** The key in `_meta` for programs: the calls in order, with the number of blocks of each. */
const ITEMS = "pml/batch";
const NAME_MAX = 100;
/** 32 characters, so that each of a mark has five random bits. */
const ALPHABET = "abcdefghijklmnopqrstuvwxyz234567";
const MARK_LENGTH = 8;

/** Returns the result of a batch. It is an error if all its calls failed. */
export function batchResult(items: readonly BatchItem[]): ToolResult {
  // All results are complete, so none of them can contain the mark.
  const mark = newMark();
  const results = items.map(({ result, error }) => result ?? errorResult(error));
  const blocks = results.map(blocksOf);
  const lines = items.map((item, at) => {
    const intro = at === 0 && items.length > 1
      ? `Each of the ${items.length} results begins with a line that contains ${mark}\n`
      : "";
    const name = `${visible(item.tool, NAME_MAX)}${idText(item)}`;
    const failed = results[at]?.isError === true ? " failed" : "";
    return `${intro}[${mark} ${at + 1}/${items.length}] ${name}${failed}`;
  });
  const facts = items.map(({ id, tool, error }, at) =>
    defined({
      id,
      tool,
      blocks: blocks[at]?.length,
      isError: results[at]?.isError,
      error: error && errorBody(error) as unknown as JsonObject,
    })
  );
  const isError = items.length > 0 && results.every((one) => one.isError === true) || undefined;
  return {
    content: lines.flatMap((line, at) => [...textResult(line).content, ...blocks[at] ?? []]),
    ...defined({ isError }),
    _meta: { [ITEMS]: facts },
  };
}

function idText({ id }: BatchItem): string {
  return id === undefined ? "" : ` (${visible(id, NAME_MAX)})`;
}

/** Returns the blocks of a result, with the structured content as a text if no block has it. */
function blocksOf({ content, structuredContent, isError }: ToolResult): readonly ContentBlock[] {
  const isShown = structuredContent === undefined || isError === true && content.length > 0 ||
    content.some((block) => isTextOf(block, structuredContent as Json));
  return isShown ? content : [...content, ...textResult(JSON.stringify(structuredContent)).content];
}

function isTextOf({ type, text }: ContentBlock, value: Json): boolean {
  if (type !== "text" || typeof text !== "string") return false;
  if (text === JSON.stringify(value)) return true;
  if (!/^\s*[[{]/.test(text)) return false;
  try {
    return sorted(parseExact(text) as Json) === sorted(value);
  } catch {
    return false; // other text
  }
}

function newMark(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(MARK_LENGTH));
  // guard: batch-mark
  return Array.from(bytes, (byte) => ALPHABET[byte % ALPHABET.length]).join("");
}

/**
 * Bounds on the result of a tool: the SDK looks at it on the thread that serves everybody.
 *
 * @module
 */

import { objectOf } from "./json.ts";
import { tooLarge } from "./json_bounds.ts";

/** The SDK looks at each block on the thread that serves everybody: a million took it 9 s. */
const BLOCKS_MAX = 4_096;
const BESIDE_MAX = 500;

/**
 * Throws RESULT_TOO_LARGE where the content of a result has too many blocks, or where it or one of
 * them has too much beside its content: the SDK compares the names with each other, and tells each
 * member of a list that is wrong.
 */
export function checkBlocks(
  what: string,
  { content, _meta }: { readonly content?: unknown; readonly _meta?: unknown },
): void {
  const blocks = Array.isArray(content) ? content : [];
  const checks = [["blocks", blocks, BLOCKS_MAX], ["members in _meta", _meta, BESIDE_MAX]] as const;
  for (const [name, value, max] of checks) checkSize(what, { name, value, max });
  for (const { _meta, annotations, icons, resource } of blocks.map(objectOf)) {
    const beside = { _meta, icons, audience: objectOf(annotations).audience };
    // Before each of them is looked at.
    for (const [name, value] of Object.entries({ ...beside, resource: objectOf(resource)._meta })) {
      checkSize(what, { name: `members in ${name} of a block`, value, max: BESIDE_MAX });
    }
    for (const { sizes } of Array.isArray(icons) ? icons.map(objectOf) : []) {
      checkSize(what, { name: "sizes of an icon", value: sizes, max: BESIDE_MAX });
    }
  }
}

function checkSize(
  what: string,
  { name, value, max }: { readonly name: string; readonly value: unknown; readonly max: number },
): void {
  const size = Array.isArray(value) ? value.length : Object.keys(objectOf(value)).length;
  if (size <= max) return;
  const why = `it has ${size} ${name}, more than ${max}`;
  throw tooLarge(what, { why, detail: { size, max } });
}

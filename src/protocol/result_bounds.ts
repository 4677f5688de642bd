/**
 * Limits on the result of a tool.
 *
 * @module
 */

import { hasAny, isObject, listOf, objectOf } from "../core/json.ts";
import { tooLargeError } from "../core/json_bounds.ts";

/**
 * The maximum number of blocks. Clients with the SDK check each block on the main thread: a million
 * blocks took 9 s.
 */
const BLOCKS_MAX = 4_096;
/** The maximum number of members of an object, and of items of a list, other than the blocks. */
const OTHER_MEMBERS_MAX = 500;
/** The members of a block whose sizes are limited. */
const CHECKED_MEMBERS = ["_meta", "annotations", "icons", "resource"];

/**
 * Throws RESULT_TOO_LARGE if a result has too many blocks, or if another list or object in it has too
 * many members. The SDK in a client compares all names of an object with each other, and reports
 * each wrong item of a list.
 */
export function checkBlocks(
  what: string,
  { content, _meta }: { readonly content?: unknown; readonly _meta?: unknown },
): void {
  const blocks = listOf(content);
  if (_meta === undefined && blocks.length <= BLOCKS_MAX && blocks.every(isPlain)) return;
  const checks = [["blocks", blocks, BLOCKS_MAX], [
    "members in _meta",
    _meta,
    OTHER_MEMBERS_MAX,
  ]] as const;
  for (const [name, value, max] of checks) checkSize(what, { name, value, max });
  for (const { _meta, annotations, icons, resource } of blocks.map(objectOf)) {
    const lists = { _meta, icons, audience: objectOf(annotations).audience };
    // Check the sizes before anything reads the members.
    for (const [name, value] of Object.entries({ ...lists, resource: objectOf(resource)._meta })) {
      checkSize(what, { name: `members in ${name} of a block`, value, max: OTHER_MEMBERS_MAX });
    }
    for (const { sizes } of Array.isArray(icons) ? icons.map(objectOf) : []) {
      checkSize(what, { name: "sizes of an icon", value: sizes, max: OTHER_MEMBERS_MAX });
    }
  }
}

/** Returns whether a block has none of the members whose size is checked. */
function isPlain(block: unknown): boolean {
  return isObject(block) && !hasAny(block, CHECKED_MEMBERS);
}

function checkSize(
  what: string,
  { name, value, max }: { readonly name: string; readonly value: unknown; readonly max: number },
): void {
  const size = Array.isArray(value) ? value.length : Object.keys(objectOf(value)).length;
  if (size <= max) return;
  const why = `it has ${size} ${name}, more than ${max}`;
  throw tooLargeError(what, { why, detail: { size, max } });
}

/**
 * What the keywords of JSON Schema say of an array and its items.
 *
 * @module
 */

import type { Rule, Seen, Spot } from "./_json_schema.ts";
import { type Around, least, type Make, quietly, within } from "./_keywords.ts";
import { limits } from "./_limits.ts";
import { FAILS, FITS, type Grade, UNKNOWN } from "./_run.ts";

type Items = readonly unknown[];

/** The keywords of arrays. */
export const items: Readonly<Record<string, Make>> = {
  ...limits(
    "Items",
    ["Array has too few items", "Array has too many items"],
    (value) => Array.isArray(value) ? value.length : undefined,
  ),
  prefixItems: (said, around) => Array.isArray(said) ? each(said, around) : undefined,
  items: (said, around) => {
    if (Array.isArray(said)) return each(said, around);
    const { prefixItems } = around.schema;
    return after(said, Array.isArray(prefixItems) ? prefixItems.length : 0, around);
  },
  additionalItems: (said, around) =>
    Array.isArray(around.schema.items)
      ? after(said, around.schema.items.length, around)
      : undefined,
  contains,
  unevaluatedItems,
  uniqueItems: (said) => said === true ? ofArray(unique) : undefined,
};

function ofArray(check: (value: Items, spot: Spot) => Grade): Rule {
  return (value, spot) => Array.isArray(value) ? check(value, spot) : FITS;
}

/** Checks each item by the schema at its index. */
function each(schemas: readonly unknown[], around: Around): Rule {
  const nodes = schemas.map(around.node);
  return eachItem((at) => nodes[at]);
}

/** Checks every item from an index on by one schema. */
function after(said: unknown, from: number, around: Around): Rule {
  const node = around.node(said);
  return eachItem((at) => at < from ? undefined : node);
}

function unevaluatedItems(said: unknown, around: Around): Rule {
  const node = around.node(said);
  return eachItem((at, seen) => seen?.has(at) ? undefined : node);
}

function eachItem(nodeAt: (at: number, seen: Seen) => Rule | undefined): Rule {
  return ofArray((value, spot) => {
    const { run, seen } = spot;
    run.spend(value.length / 4);
    let all: Grade = FITS;
    for (let at = 0; at < value.length && all !== FAILS; at++) {
      const node = nodeAt(at, seen);
      if (node === undefined) continue;
      seen?.add(at);
      all = least(all, node(value[at], within(spot, at)));
    }
    return all;
  });
}

function contains(said: unknown, around: Around): Rule {
  const node = around.node(said);
  const { minContains: min, maxContains: max } = around.schema;
  const [least, most] = [
    typeof min === "number" ? min : 1,
    typeof max === "number" ? max : Infinity,
  ];
  return ofArray((value, spot) => {
    const { at, run, seen } = spot;
    const found = [0, 0, 0];
    for (let index = 0; index < value.length; index++) {
      const grade = quietly(node, value[index], within(spot, index));
      found[grade] = (found[grade] ?? 0) + 1;
      if (grade !== FAILS) seen?.add(index);
    }
    const [, perhaps = 0, sure = 0] = found;
    if (sure + perhaps < least || sure > most) {
      const wanted = sure > most ? `at most ${most}` : `at least ${least}`;
      return run.fail(at, () => `Array must contain ${wanted} items that match, and has ${sure}`);
    }
    return sure < least || sure + perhaps > most ? UNKNOWN : FITS;
  });
}

function unique(value: Items, { at, run }: Spot): Grade {
  const seen = new Map<string, number>();
  run.spend(value.length * 14);
  for (const [index, one] of value.entries()) {
    const key = run.keyOf(one);
    const before = seen.get(key);
    if (before !== undefined) {
      return run.fail(at, () => `Duplicate items at indexes ${before} and ${index}`);
    }
    seen.set(key, index);
  }
  return FITS;
}

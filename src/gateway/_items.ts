/**
 * What the keywords of JSON Schema say of an array and its items.
 *
 * @module
 */

import type { Node, Rule, Spot } from "./_json_schema.ts";
import { type Around, least, type Make, quietly } from "./_keywords.ts";
import { FAILS, FITS, type Grade, UNKNOWN } from "./_run.ts";

type Items = readonly unknown[];

/** The keywords of arrays. */
export const items: Readonly<Record<string, Make>> = {
  minItems: count("few", "<", (found, least) => found < least),
  maxItems: count("many", ">", (found, most) => found > most),
  prefixItems: (said, around) => Array.isArray(said) ? each(said, 0, around) : undefined,
  items: (said, around) => {
    if (Array.isArray(said)) return each(said, 0, around);
    return after(said, lengthOf(around.schema.prefixItems), around);
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

function lengthOf(list: unknown): number {
  return Array.isArray(list) ? list.length : 0;
}

function count(
  words: string,
  sign: string,
  isBeyond: (found: number, limit: number) => boolean,
): Make {
  return (said) => {
    if (typeof said !== "number") return undefined;
    return ofArray(({ length }, { at, run }) => {
      if (!isBeyond(length, said)) return FITS;
      return run.fail(at, () => `Array has too ${words} items (${length} ${sign} ${said})`);
    });
  };
}

/** Checks each item by the schema at its index. */
function each(schemas: readonly unknown[], from: number, { reader, root }: Around): Rule {
  const nodes = schemas.map((schema) => reader.node(schema, root));
  return ofArray((value, spot) => {
    let all: Grade = FITS;
    for (let at = from; at < value.length && all !== FAILS; at++) {
      const node = nodes[at];
      if (node === undefined) break;
      all = least(all, item(node, { value, at, spot }));
    }
    return all;
  });
}

/** Checks every item from an index on by one schema. */
function after(said: unknown, from: number, { reader, root }: Around): Rule {
  const node = reader.node(said, root);
  return ofArray((value, spot) => {
    let all: Grade = FITS;
    for (let at = from; at < value.length && all !== FAILS; at++) {
      all = least(all, item(node, { value, at, spot }));
    }
    return all;
  });
}

function item(
  node: Node,
  { value, at, spot: { at: up, run, seen } }: {
    readonly value: Items;
    readonly at: number;
    readonly spot: Spot;
  },
): Grade {
  seen?.add(at);
  return node.check(value[at], { at: { up, key: at }, run, seen: undefined });
}

function contains(said: unknown, { schema, reader, root }: Around): Rule {
  const node = reader.node(said, root);
  const { minContains: min, maxContains: max } = schema;
  const [least, most] = [typeof min === "number" ? min : 1, typeof max === "number" ? max : NONE];
  return ofArray((value, { at, run, seen }) => {
    const found = [0, 0, 0];
    for (let index = 0; index < value.length; index++) {
      const place = { up: at, key: index };
      const grade = quietly(node, value[index], { at: place, run, seen: undefined });
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

const NONE = Infinity;

function unevaluatedItems(said: unknown, { reader, root }: Around): Rule {
  const node = reader.node(said, root);
  return ofArray((value, spot) => {
    let all: Grade = FITS;
    spot.run.spend(value.length);
    for (let at = 0; at < value.length && all !== FAILS; at++) {
      if (!spot.seen?.has(at)) all = least(all, item(node, { value, at, spot }));
    }
    return all;
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

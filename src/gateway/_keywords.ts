/**
 * What the keywords of JSON Schema say of a value.
 *
 * @module
 */

import { memberOf } from "../core/json.ts";
import { FORMATS } from "./_formats.ts";
import type { Rule, SchemaReader, Spot } from "./_json_schema.ts";
import { limits } from "./_limits.ts";
import { members } from "./_members.ts";
import { items } from "./_items.ts";
import { FAILS, FITS, type Grade, type Run, UNKNOWN } from "./_run.ts";

/** Where a keyword stands. */
export interface Around {
  readonly schema: Readonly<Record<string, unknown>>;
  /** The schema that references start at. */
  readonly root: object;
  readonly reader: SchemaReader;
  /** Gives the rule of a schema within this one. */
  readonly node: (schema: unknown) => Rule;
}

/** Makes the rule of a keyword; undefined where it says nothing that has a meaning. */
export type Make = (said: unknown, around: Around) => Rule | undefined;

/** Every keyword that says something of a value, in the order in which they are checked. */
export const KEYWORDS: ReadonlyMap<string, Make> = new Map(Object.entries<Make>({
  $ref: reference("$ref"),
  $dynamicRef: reference("$dynamicRef"),
  $recursiveRef: reference("$recursiveRef"),
  type,
  const: (said) => oneOfValues([said], `does not match ${shown(said)}`),
  enum: (said, { schema }) => {
    if (!Array.isArray(said)) return undefined;
    const values = isNullable(schema) ? [...said, null] : said;
    return oneOfValues(values, `does not match any of ${shown(said)}`);
  },
  not,
  anyOf,
  allOf,
  oneOf,
  if: ifThenElse,
  ...members,
  ...items,
  minimum: bound("is less than", "exclusiveMinimum", (value, least) => value < least),
  maximum: bound("is greater than", "exclusiveMaximum", (value, most) => value > most),
  exclusiveMinimum: bound("is less than or equal to", "", (value, least) => value <= least),
  exclusiveMaximum: bound("is greater than or equal to", "", (value, most) => value >= most),
  multipleOf: bound("is not a multiple of", "", (value, step) => {
    const rest = Math.abs(value % step);
    return rest >= ROUNDING && Math.abs(step) - rest >= ROUNDING;
  }),
  ...limits(
    "Length",
    ["String is too short", "String is too long"],
    (value, run, limit) => typeof value === "string" ? lengthOf(value, run, limit) : undefined,
  ),
  pattern,
  format: (said) => {
    const is = memberOf(FORMATS, String(said));
    return is && ofText((text, { at, run }) => {
      run.spend(25 + text.length / 2);
      return is(text) ? FITS : run.fail(at, () => `String does not match format "${said}"`);
    });
  },
}));

const TYPES: readonly string[] = "null array object string number integer boolean".split(" ");
const ROUNDING = 1.1920929e-7;
/** How many characters of a value an error shows. */
const SHOWN = 200;
const MOST_SHOWN = 30;

/** Says what is wrong with a whole value. */
function wrong({ at, run }: Spot, why: string): Grade {
  return run.fail(at, () => `the value ${why}`);
}

function shown(value: unknown): string {
  const some = Array.isArray(value) ? value.slice(0, MOST_SHOWN) : value;
  const text = JSON.stringify(some) ?? "";
  return text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
}

function reference(keyword: string): Make {
  return (said, { root, reader }) => {
    const found = typeof said === "string" ? reader.pointed(said, root) : undefined;
    return found === undefined ? reader.cannot(keyword, said) : reader.later(...found);
  };
}

function type(said: unknown, { schema, reader }: Around): Rule {
  const all: readonly unknown[] = [said].flat();
  // There may be many that are none.
  const wanted = TYPES.filter((one) => all.includes(one));
  // A word that is no type of JSON Schema means something to the server.
  const isKnown = all.every((one) => TYPES.some((known) => known === one));
  const cannot = isKnown ? undefined : reader.cannot("type", said);
  const expected = all.slice(0, MOST_SHOWN).join(" or ");
  return (value, spot) => {
    const found = value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
    const isWhole = found === "number" && Number.isInteger(value);
    if (wanted.includes(found) || isWhole && wanted.includes("integer")) return FITS;
    if (value === null && isNullable(schema)) return FITS;
    return cannot?.(value, spot) ?? wrong(spot, `is of type ${found}, not ${expected}`);
  };
}

/** Tells whether null is meant too: OpenAPI says so beside the type. */
function isNullable({ nullable }: Around["schema"]): boolean {
  return nullable === true;
}

function oneOfValues(values: readonly unknown[], why: string): Rule {
  let keys: Set<string> | undefined;
  // A value of a kind that is not among them need not be read.
  const hasStructure = values.some((value) => typeof value === "object" && value !== null);
  return (value, spot) => {
    const { run } = spot;
    if (keys === undefined) {
      run.spend(values.length * 10);
      keys = new Set(values.map((each) => run.keyOf(each)));
    }
    run.spend(4);
    const isPlain = typeof value !== "object" || value === null;
    return (isPlain || hasStructure) && keys.has(run.keyOf(value)) ? FITS : wrong(spot, why);
  };
}

/** Checks something of which only the grade counts, not what is wrong. */
export function quietly(node: Rule, value: unknown, spot: Spot): Grade {
  spot.run.quiet++;
  const grade = node(value, spot);
  spot.run.quiet--;
  return grade;
}

/** Gives where a member or an item is checked. */
export function within({ at: up, run }: Spot, key: string | number): Spot {
  return { at: { up, key }, run, seen: undefined };
}

function not(said: unknown, around: Around): Rule {
  const node = around.node(said);
  return (value, spot) => {
    const grade = 2 - quietly(node, value, { ...spot, seen: undefined });
    return grade === FAILS ? wrong(spot, 'matched "not" schema') : grade as Grade;
  };
}

function choices(said: unknown, { node }: Around): readonly Rule[] | undefined {
  return Array.isArray(said) ? said.map(node) : undefined;
}

function allOf(said: unknown, around: Around): Rule | undefined {
  const nodes = choices(said, around);
  return nodes && ((value, spot) => {
    let grade: Grade = FITS;
    for (const node of nodes) grade = least(grade, node(value, spot));
    return grade;
  });
}

function anyOf(said: unknown, around: Around): Rule | undefined {
  const nodes = choices(said, around);
  return nodes && ((value, spot) => {
    let grade: Grade = FAILS;
    for (const node of nodes) {
      const found = quietly(node, value, spot);
      if (found > grade) grade = found;
      // What others say of the members counts, where it counts at all.
      if (grade === FITS && spot.seen === undefined) break;
    }
    return grade === FAILS ? noChoice(nodes, value, { spot, how: "any subschemas" }) : grade;
  });
}

function oneOf(said: unknown, around: Around): Rule | undefined {
  const nodes = choices(said, around);
  return nodes && ((value, spot) => {
    const found = [0, 0, 0];
    for (const node of nodes) {
      const grade = quietly(node, value, spot);
      found[grade] = (found[grade] ?? 0) + 1;
    }
    const [, perhaps = 0, fitting = 0] = found;
    const how = `exactly one subschema (${fitting} matches)`;
    if (fitting > 1) return wrong(spot, `does not match ${how}`);
    if (fitting + perhaps === 0) return noChoice(nodes, value, { spot, how });
    return perhaps > 0 ? UNKNOWN : FITS;
  });
}

/** Says what is wrong by each choice. */
function noChoice(
  nodes: readonly Rule[],
  value: unknown,
  { spot, how }: { readonly spot: Spot; readonly how: string },
): Grade {
  wrong(spot, `does not match ${how}`);
  if (spot.run.quiet === 0) { for (const node of nodes) node(value, spot); }
  return FAILS;
}

function ifThenElse(said: unknown, { schema, node }: Around): Rule {
  const [condition, yes, no] = [node(said), node(schema.then), node(schema.else)];
  return (value, spot) => {
    const grade = quietly(condition, value, spot);
    if (grade === FITS) return yes(value, spot);
    if (grade === FAILS) return no(value, spot);
    const either = [quietly(yes, value, spot), quietly(no, value, spot)] as const;
    if (either[0] === either[1] && either[0] !== FAILS) return either[0];
    return Math.max(...either) === FAILS ? yes(value, spot) : UNKNOWN;
  };
}

function bound(
  words: string,
  exclusive: string,
  isBeyond: (value: number, limit: number) => boolean,
): Make {
  return (said, { schema }) => {
    if (typeof said !== "number") return undefined;
    // In draft-04 the exclusive one is no bound of its own.
    const isExclusive = schema[exclusive] === true;
    return (value, { at, run }) => {
      if (typeof value !== "number") return FITS;
      if (!isBeyond(value, said) && !(isExclusive && value === said)) return FITS;
      return run.fail(at, () => `${value} ${words}${isExclusive ? " or equal to" : ""} ${said}`);
    };
  };
}

function ofText(check: (text: string, spot: Spot) => Grade): Rule {
  return (value, spot) => typeof value === "string" ? check(value, spot) : FITS;
}

/** A character is one or two units: mostly it is known without counting on which side it is. */
function lengthOf(text: string, run: Run, limit: number): number {
  const { length } = text;
  if (length < limit || length / 2 > limit) return length;
  run.spend(length / 8);
  let found = length;
  for (let at = 1; at < length; at++) {
    const isPair = (text.charCodeAt(at - 1) & 0xfc00) === 0xd800 &&
      (text.charCodeAt(at) & 0xfc00) === 0xdc00;
    if (isPair) found--;
  }
  return found;
}

function pattern(said: unknown, { schema, reader }: Around): Rule | undefined {
  if (typeof said !== "string") return undefined;
  const read = reader.pattern(said);
  // The makers of schemas write both for an address of mail, a date or an IP address.
  if (read === undefined && Object.hasOwn(FORMATS, String(schema.format))) return undefined;
  const cannot = read === undefined ? reader.cannot("pattern", said) : undefined;
  return ofText((text, spot) => {
    const { at, run } = spot;
    const found = read === undefined ? undefined : run.matches(read, text);
    if (found === undefined) return cannot?.(text, spot) ?? run.unknown("pattern");
    return found ? FITS : run.fail(at, () => "String does not match pattern");
  });
}

/** The lesser of two grades. */
export function least(one: Grade, other: Grade): Grade {
  return one < other ? one : other;
}

/**
 * What the keywords of JSON Schema say of an object and its members.
 *
 * @module
 */

import { isObject, objectOf } from "../core/json.ts";
import type { Rule, Spot } from "./_json_schema.ts";
import { type Around, least, type Make, quietly, within } from "./_keywords.ts";
import { limits } from "./_limits.ts";
import type { Pattern } from "./_patterns.ts";
import { brief, FAILS, FITS, type Grade, type Run, UNKNOWN } from "./_run.ts";

type Value = Readonly<Record<string, unknown>>;

/** The keywords of objects. */
export const members: Readonly<Record<string, Make>> = {
  required: (said) => allOf(said, (name) => `there is no required property "${brief(name)}"`),
  ...limits(
    "Properties",
    ["there are too few properties", "there are too many properties"],
    (value, run) => isObject(value) ? run.namesOf(value).length : undefined,
  ),
  propertyNames,
  dependentRequired: dependent,
  dependentSchemas: dependent,
  dependencies: dependent,
  properties: (_, around) => eachMember(around.schema, around),
  // Where there are properties, they look at these, too.
  patternProperties: (_, around) => unlessAfter(["properties"], around),
  additionalProperties: (_, around) => unlessAfter(["properties", "patternProperties"], around),
  unevaluatedProperties: (said, around) =>
    eachMember({ additionalProperties: said }, { ...around, isLast: true }),
};

function unlessAfter(others: readonly string[], around: Around): Rule | undefined {
  return others.some((one) => around.schema[one] !== undefined)
    ? undefined
    : eachMember(around.schema, around);
}

function ofObject(check: (value: Value, spot: Spot) => Grade): Rule {
  return (value, spot) => isObject(value) ? check(value, spot) : FITS;
}

/** Wants all members that a list names. */
function allOf(names: unknown, why: (name: string) => string): Rule | undefined {
  if (!Array.isArray(names)) return undefined;
  const all = names.map(String);
  return ofObject((value, { at, run }) => {
    run.spend(all.length);
    let grade: Grade = FITS;
    for (const name of all) {
      if (!Object.hasOwn(value, name)) grade = run.fail(at, () => why(name));
    }
    return grade;
  });
}

function propertyNames(said: unknown, around: Around): Rule {
  const node = around.node(said);
  return ofObject((value, { at, run }) => {
    let grade: Grade = FITS;
    for (const name of run.namesOf(value)) {
      grade = least(grade, quietly(node, name, { at, run, seen: undefined }));
      if (grade !== FAILS) continue;
      return run.fail(at, () => `Property name "${brief(name)}" does not match schema`);
    }
    return grade;
  });
}

function dependent(said: unknown, { node }: Around): Rule | undefined {
  if (!isObject(said)) return undefined;
  const rules = Object.entries(said).map(([name, one]): readonly [string, Rule] => {
    const why = (other: string) =>
      `the value has "${brief(name)}" but does not have "${brief(other)}"`;
    return [name, allOf(one, why) ?? node(one)];
  });
  return ofObject((value, spot) => {
    spot.run.spend(rules.length);
    let grade: Grade = FITS;
    for (const [name, rule] of rules) {
      if (Object.hasOwn(value, name)) grade = least(grade, rule(value, spot));
    }
    return grade;
  });
}

/** What a schema says of members by their names. */
interface Names {
  readonly named: readonly (readonly [string, Rule])[];
  /** Whether one of those is of that name: no map, whose places names that are numbers can aim at. */
  readonly isNamed: (name: string) => boolean;
  /** Those of which it is known whether a name matches, and those of which it is not. */
  readonly patterned: readonly (readonly [Pattern | undefined, Rule, string])[];
  readonly rest: Rule | undefined;
}

function eachMember(
  { properties, patternProperties, additionalProperties: rest }: Value,
  { reader, node, isLast = false }: Around & {
    /** Whether what other keywords have said something of is left out. */
    readonly isLast?: boolean;
  },
): Rule {
  const names: Names = {
    named: entriesOf(properties).map(([name, one]) => [name, node(one)]),
    isNamed: (name) => isObject(properties) && Object.hasOwn(properties, name),
    patterned: entriesOf(patternProperties).map(([source, one]) => {
      const pattern = reader.pattern(source);
      if (pattern === undefined) reader.cannot("patternProperties", source);
      return [pattern, node(one), source] as const;
    }),
    rest: rest === undefined ? undefined : node(rest),
  };
  const isClosed = rest === false;
  return ofObject((value, spot) => {
    const { run, seen } = spot;
    const grade = namedMembers(value, names, spot);
    const isDone = grade === FAILS || names.patterned.length === 0 && names.rest === undefined;
    if (isDone) return grade;
    let all: Grade = grade;
    for (const name of run.namesOf(value)) {
      if (isLast && seen?.has(seenAs(name, run))) continue;
      const { found, isKnown } = patternedMember(value, name, { names, spot });
      all = least(all, found);
      if (isKnown || found === UNKNOWN) seen?.add(seenAs(name, run));
      if (!isKnown && names.rest !== undefined) {
        const other = restOf(value, name, { names, spot, isClosed });
        all = least(all, found === UNKNOWN && other === FAILS ? UNKNOWN : other);
        seen?.add(seenAs(name, run));
      }
      if (all === FAILS) break;
    }
    return all;
  });
}

function entriesOf(schemas: unknown): readonly [string, unknown][] {
  return Object.entries(objectOf(schemas));
}

function namedMembers(value: Value, { named }: Names, spot: Spot): Grade {
  spot.run.spend(named.length);
  let all: Grade = FITS;
  for (const [name, node] of named) {
    if (!Object.hasOwn(value, name)) continue;
    spot.seen?.add(seenAs(name, spot.run));
    all = least(all, node(value[name], within(spot, name)));
    // One member that is wrong is enough to be told.
    if (all === FAILS) break;
  }
  return all;
}

/** Gives the name of a member for a set; never one that looks like a number, as of maps. */
function seenAs(name: string, run: Run): string {
  run.spend(2 + name.length / 20);
  return `.${name}`;
}

interface Look {
  readonly names: Names;
  readonly spot: Spot;
}

/** Looks at the patterns that a name matches; known is a member that one of them spoke of. */
function patternedMember(
  value: Value,
  name: string,
  { names: { isNamed, patterned, rest }, spot }: Look,
): { readonly found: Grade; readonly isKnown: boolean } {
  const { run } = spot;
  let isKnown = isNamed(name);
  let found: Grade = FITS;
  for (const [pattern, node, source] of patterned) {
    const isMatch = pattern === undefined ? undefined : run.matches(pattern, name);
    if (isMatch === false) continue;
    const inside = within(spot, name);
    if (isMatch) {
      isKnown = true;
      found = least(found, node(value[name], inside));
    } else if (quietly(node, value[name], inside) !== FITS || rest !== undefined) {
      found = least(found, run.unknown(`patternProperties ${JSON.stringify(source.slice(0, 80))}`));
    }
  }
  return { found, isKnown };
}

function restOf(
  value: Value,
  name: string,
  { names: { rest }, spot, isClosed }: Look & { readonly isClosed: boolean },
): Grade {
  if (rest === undefined) return FITS;
  if (isClosed) return spot.run.fail(spot.at, () => `"${brief(name)}" is unknown`);
  return rest(value[name], within(spot, name));
}

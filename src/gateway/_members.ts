/**
 * What the keywords of JSON Schema say of an object and its members.
 *
 * @module
 */

import { isObject } from "../core/json.ts";
import type { Node, Rule, Spot } from "./_json_schema.ts";
import { type Around, least, type Make, quietly } from "./_keywords.ts";
import { limits } from "./_limits.ts";
import type { Pattern } from "./_patterns.ts";
import { brief, FAILS, FITS, type Grade, type Run, UNKNOWN } from "./_run.ts";

type Value = Readonly<Record<string, unknown>>;

/** The keywords of objects. */
export const members: Readonly<Record<string, Make>> = {
  required: (said) => Array.isArray(said) ? ofObject(required(said.map(String))) : undefined,
  ...limits(
    "Properties",
    ["there are too few properties", "there are too many properties"],
    (value, run) => isObject(value) ? run.namesOf(value).length : undefined,
  ),
  propertyNames,
  dependentRequired: dependent,
  dependentSchemas: dependent,
  dependencies: dependent,
  properties: (said, around) => eachMember(said, around),
  // Where there are properties, they look at these, too.
  patternProperties: (_, around) => unlessAfter(["properties"], around),
  additionalProperties: (_, around) => unlessAfter(["properties", "patternProperties"], around),
  unevaluatedProperties,
};

function unlessAfter(others: readonly string[], around: Around): Rule | undefined {
  return others.some((one) => around.schema[one] !== undefined)
    ? undefined
    : eachMember({}, around);
}

function ofObject(check: (value: Value, spot: Spot) => Grade): Rule {
  return (value, spot) => isObject(value) ? check(value, spot) : FITS;
}

function required(names: readonly string[]): (value: Value, spot: Spot) => Grade {
  return (value, { at, run }) => {
    run.spend(names.length);
    let grade: Grade = FITS;
    for (const name of names) {
      if (Object.hasOwn(value, name)) continue;
      grade = run.fail(at, () => `there is no required property "${brief(name)}"`);
    }
    return grade;
  };
}

function propertyNames(said: unknown, { reader, root }: Around): Rule {
  const node = reader.node(said, root);
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

function dependent(said: unknown, { reader, root }: Around): Rule | undefined {
  if (!isObject(said)) return undefined;
  const all = Object.entries(said).map(([name, one]) =>
    [name, Array.isArray(one) ? one.map(String) : reader.node(one, root)] as const
  );
  return ofObject((value, spot) => {
    const { at, run } = spot;
    run.spend(all.length);
    let grade: Grade = FITS;
    for (const [name, wanted] of all) {
      if (!Object.hasOwn(value, name)) continue;
      if (!isNames(wanted)) {
        grade = least(grade, wanted.check(value, spot));
        continue;
      }
      run.spend(wanted.length);
      for (const other of wanted) {
        if (Object.hasOwn(value, other)) continue;
        const why = () => `Instance has "${brief(name)}" but does not have "${brief(other)}"`;
        grade = run.fail(at, why);
      }
    }
    return grade;
  });
}

function isNames(wanted: readonly string[] | Node): wanted is readonly string[] {
  return Array.isArray(wanted);
}

/** What a schema says of members by their names. */
interface Names {
  readonly named: readonly (readonly [string, Node])[];
  /** Whether one of those is of that name: no map, whose places names that are numbers can aim at. */
  readonly isNamed: (name: string) => boolean;
  /** Those of which it is known whether a name matches, and those of which it is not. */
  readonly patterned: readonly (readonly [Pattern | undefined, Node, string])[];
  readonly rest: Node | undefined;
}

function eachMember(said: unknown, { schema, reader, root }: Around): Rule {
  const { patternProperties, additionalProperties: rest } = schema;
  const names: Names = {
    named: reader.nodes(said, root),
    isNamed: (name) => isObject(said) && Object.hasOwn(said, name),
    patterned: reader.nodes(patternProperties, root).map(([source, node]) => {
      const pattern = reader.pattern(source);
      if (pattern === undefined) reader.cannot("patternProperties", source);
      return [pattern, node, source] as const;
    }),
    rest: rest === undefined ? undefined : reader.node(rest, root),
  };
  const isClosed = rest === false;
  return ofObject((value, spot) => {
    const { run, seen } = spot;
    const grade = namedMembers(value, names, spot);
    const isDone = grade === FAILS || names.patterned.length === 0 && names.rest === undefined;
    if (isDone) return grade;
    let all: Grade = grade;
    for (const name of run.namesOf(value)) {
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

function namedMembers(value: Value, { named }: Names, { at, run, seen }: Spot): Grade {
  run.spend(named.length);
  let all: Grade = FITS;
  for (const [name, node] of named) {
    if (!Object.hasOwn(value, name)) continue;
    seen?.add(seenAs(name, run));
    const place = { up: at, key: name };
    all = least(all, node.check(value[name], { at: place, run, seen: undefined }));
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
  { names: { isNamed, patterned, rest }, spot: { at, run } }: Look,
): { readonly found: Grade; readonly isKnown: boolean } {
  let isKnown = isNamed(name);
  let found: Grade = FITS;
  for (const [pattern, node, source] of patterned) {
    const isMatch = pattern === undefined ? undefined : run.matches(pattern, name);
    if (isMatch === false) continue;
    const spot = { at: { up: at, key: name }, run, seen: undefined };
    if (isMatch) {
      isKnown = true;
      found = least(found, node.check(value[name], spot));
    } else if (quietly(node, value[name], spot) !== FITS || rest !== undefined) {
      found = least(found, run.unknown(`patternProperties ${JSON.stringify(source.slice(0, 80))}`));
    }
  }
  return { found, isKnown };
}

function restOf(
  value: Value,
  name: string,
  { names: { rest }, spot: { at, run }, isClosed }: Look & { readonly isClosed: boolean },
): Grade {
  if (rest === undefined) return FITS;
  if (isClosed) return run.fail(at, () => `Property "${brief(name)}" is unknown`);
  return rest.check(value[name], { at: { up: at, key: name }, run, seen: undefined });
}

function unevaluatedProperties(said: unknown, { reader, root }: Around): Rule {
  const node = reader.node(said, root);
  return ofObject((value, { at, run, seen }) => {
    let all: Grade = FITS;
    for (const name of run.namesOf(value)) {
      if (seen?.has(seenAs(name, run))) continue;
      seen?.add(seenAs(name, run));
      const place = { up: at, key: name };
      all = said === false
        ? run.fail(at, () => `Property "${brief(name)}" is unknown`)
        : least(all, node.check(value[name], { at: place, run, seen: undefined }));
    }
    return all;
  });
}

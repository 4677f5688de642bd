/**
 * Validates the values of a configuration with schemas that are composed of small parts. Each part
 * reports the expected type of a wrong value.
 *
 * A schema library would take a third of the time of a start, and 10 MB of memory.
 *
 * @module
 */

import { isObject, quoted } from "./json.ts";
import { nearName } from "./near_name.ts";

/** A path of keys and indices. */
export type Path = (string | number)[];

/** A problem of a value. */
export interface Issue {
  readonly path: Path;
  /** The expected value, in words. */
  readonly wanted: string;
  /** For an unknown key: the known keys; empty if any key is allowed. */
  readonly keys?: readonly string[];
}

/** A place in a value, and the receiver of its problems. */
export interface ValuePlace {
  readonly path: Path;
  readonly wrong: (issue: Issue) => void;
}

/**
 * The JSON Schema of a part. `pattern` may be a `RegExp`. `wanted` describes the values if there is
 * no `description`.
 */
export type Schema = Readonly<Record<string, unknown>>;

/** A part of a schema: the check of a value, and the JSON Schema that accepts the same values. */
export interface ValueSchema<T> {
  /** Returns whether a value is valid, and reports each of its problems. */
  (value: unknown, place: ValuePlace): value is T;
  /** Returns the JSON Schema. A function, because a start of PML does not need it. */
  schema(): Schema;
}

/** A part with a default. */
export type WithDefault<T> = ValueSchema<T> & { readonly default: T };

/** The type of the values that a part accepts. */
export type ValueOf<W> = W extends (value: unknown, place: ValuePlace) => value is infer T ? T
  : never;

/** The keys of an object. */
export type SchemaMembers = Readonly<Record<string, ValueSchema<unknown>>>;
type MembersValue<R extends SchemaMembers, O extends SchemaMembers> =
  & { [K in keyof R]: ValueOf<R[K]> }
  & { [K in keyof O]?: ValueOf<O[K]> | undefined };

/** Accepts a value that passes a test. `schema` must accept the same values. */
export function leaf<T>(
  wanted: string,
  passes: (value: unknown) => boolean,
  schema: Schema = {},
): ValueSchema<T> {
  const check = (value: unknown, place: ValuePlace): value is T =>
    passes(value) || report(place, wanted);
  return Object.assign(check, { schema: () => ({ ...schema, wanted }) });
}

/** Accepts any value. */
export const anyValue = leaf<unknown>("any value", () => true);

/** Accepts one of some texts. */
export function oneOf<const T extends string>(names: readonly T[]): ValueSchema<T> {
  const all: readonly unknown[] = names;
  return leaf(`one of ${names.join(", ")}`, (value) => all.includes(value), { enum: names });
}

/** Returns a part whose schema has further keywords. */
export function withKeywords<T>(part: ValueSchema<T>, schema: Schema): ValueSchema<T> {
  const check = (value: unknown, place: ValuePlace): value is T => part(value, place);
  return Object.assign(check, { schema: () => ({ ...part.schema(), ...schema }) });
}

/** Returns a key of a table of settings: its values, a sentence about it, and its default. */
export function setting<T>(part: ValueSchema<T>, description: string, value: T): WithDefault<T>;
/** Returns a key without a default. */
export function setting<T>(part: ValueSchema<T>, description: string): ValueSchema<T>;
export function setting<T>(part: ValueSchema<T>, description: string, value?: T): ValueSchema<T> {
  return Object.assign(withKeywords(part, { description, default: value }), { default: value });
}

/** Returns the defaults of the keys that have one. */
export function defaultsOf(members: SchemaMembers): Readonly<Record<string, unknown>> {
  const all = Object.entries(members as Readonly<Record<string, Partial<WithDefault<unknown>>>>)
    .map(([key, { default: value }]) => [key, value]);
  return Object.fromEntries(all.filter(([, value]) => value !== undefined));
}

/** Accepts an object with required and optional keys; with `isOpen` also with any other keys. */
export function object<R extends SchemaMembers, O extends SchemaMembers>(
  required: R,
  optional: O,
  { isOpen = false }: { readonly isOpen?: boolean } = {},
): ValueSchema<MembersValue<R, O>> {
  const members = new Map(Object.entries({ ...required, ...optional }));
  const keys = [...members.keys()];
  const check = (value: unknown, place: ValuePlace): value is MembersValue<R, O> => {
    if (!isPlain(value)) return report(place, "an object");
    const results = [...members].map(([key, member]) => {
      const memberValue = value[key];
      return memberValue === undefined && !(key in required) ||
        member(memberValue, placeOf(place, key));
    });
    const others = Object.keys(value).filter((key) => !isOpen && !members.has(key))
      .map((key) => report(placeOf(place, key), `one of ${keys.join(", ")}`, keys));
    return [...results, ...others].every(Boolean);
  };
  const schema = () => ({
    type: "object",
    wanted: "an object",
    properties: Object.fromEntries([...members].map(([key, one]) => [key, one.schema()])),
    ...!isOpen && { additionalProperties: false },
    ...Object.keys(required).length > 0 && { required: Object.keys(required) },
  });
  return Object.assign(check, { schema });
}

/** Accepts an object whose keys all match `key`, and whose values all match `item`. */
export function record<T>(
  key: ValueSchema<string>,
  item: ValueSchema<T>,
  wanted = "an object",
): ValueSchema<Record<string, T>> {
  const check = (value: unknown, place: ValuePlace): value is Record<string, T> => {
    if (!isPlain(value)) return report(place, wanted);
    const wrong = (issue: Issue) => place.wrong({ ...issue, keys: [] });
    return Object.entries(value).map(([name, one]) => {
      const at = placeOf(place, name);
      // Some code would treat a member of this name as the prototype.
      if (name === "__proto__") return report({ ...at, wrong }, "another name");
      return key(name, { ...at, wrong }) && item(one, at);
    }).every(Boolean);
  };
  const schema = () => ({
    type: "object",
    wanted,
    propertyNames: key.schema(),
    additionalProperties: item.schema(),
  });
  return Object.assign(check, { schema });
}

/** Accepts an array whose elements match `item`. */
export function list<T>(item: ValueSchema<T>, items: string): ValueSchema<T[]> {
  const wanted = `an array of ${items}`;
  const check = (value: unknown, place: ValuePlace): value is T[] =>
    Array.isArray(value)
      ? value.map((one, index) => item(one, placeOf(place, index))).every(Boolean)
      : report(place, wanted);
  return Object.assign(check, { schema: () => ({ type: "array", wanted, items: item.schema() }) });
}

/** Accepts an object that matches `objects`, or another value that matches `part`. */
export function valueOrObject<T, U>(
  part: ValueSchema<T>,
  objects: ValueSchema<U>,
): ValueSchema<T | U> {
  const check = (value: unknown, place: ValuePlace): value is T | U =>
    (isObject(value) ? objects : part)(value, place);
  const schema = () => {
    const own = part.schema();
    return { wanted: own.wanted, anyOf: [own, objects.schema()] };
  };
  return Object.assign(check, { schema });
}

/** Returns the JSON Schema of a form, in which `type` is not required. */
export function schemaWithoutType(form: ValueSchema<unknown>): Schema {
  const schema = form.schema();
  const { required } = schema;
  return Array.isArray(required)
    ? { ...schema, required: required.filter((key) => key !== "type") }
    : schema;
}

/** Accepts an object that matches one of several forms. Its `type` selects the form. */
export function selectByType<F extends SchemaMembers>(forms: F): ValueSchema<ValueOf<F[keyof F]>> {
  const types = oneOf(Object.keys(forms));
  const check = (value: unknown, place: ValuePlace): value is ValueOf<F[keyof F]> => {
    if (!isObject(value)) return report(place, "an object");
    const { type } = value;
    return types(type, placeOf(place, "type")) && forms[type]?.(value, place) === true;
  };
  const schema = () => ({
    type: "object",
    wanted: "an object",
    required: ["type"],
    properties: { type: types.schema() },
    oneOf: [...new Set(Object.values(forms))].map(schemaWithoutType),
  });
  return Object.assign(check, { schema });
}

/**
 * Accepts a value that matches a part and passes a further test. Problems are reported at `key`.
 * `schema` has the keywords for the same test.
 */
export function withTest<T>(
  part: ValueSchema<T>,
  passes: (value: T) => boolean,
  { wanted, key, schema }: {
    readonly wanted: string;
    readonly key?: string;
    readonly schema?: Schema;
  },
): ValueSchema<T> {
  const check = (value: unknown, place: ValuePlace): value is T =>
    part(value, place) &&
    (passes(value) || report(key === undefined ? place : placeOf(place, key), wanted));
  return Object.assign(check, { schema: () => ({ ...part.schema(), ...schema }) });
}

/** Returns whether a value is a plain object, and not a date or map that a parser created. */
function isPlain(value: unknown): value is Record<string, unknown> {
  return isObject(value) && [Object.prototype, null].includes(Object.getPrototypeOf(value));
}

function placeOf(place: ValuePlace, key: string | number): ValuePlace {
  return { ...place, path: [...place.path, key] };
}

function report({ path, wrong }: ValuePlace, wanted: string, keys?: readonly string[]): false {
  wrong({ path, wanted, ...keys && { keys } });
  return false;
}

/** Returns the value of a file if it matches its schema. Reports every problem otherwise. */
export function validateValue<T>(
  value: unknown,
  { schema, problem }: {
    readonly schema: ValueSchema<T>;
    /** Reports that the key at a path is wrong. */
    readonly problem: (
      path: Path,
      details: { readonly found: string; readonly wanted: string },
    ) => void;
  },
): T | undefined {
  // Copies the value, because objects of parsers may have other prototypes, or none.
  const copy: unknown = structuredClone(value);
  const isValid = schema(copy, {
    path: [],
    wrong: ({ path, wanted, keys }) => {
      const actual = keys === undefined ? describeValue(value, path) : "an unknown key";
      const near = nearName(`${path.at(-1)}`, keys ?? []);
      problem(path, { found: actual, wanted: near ? quoted(near) : wanted });
    },
  });
  return isValid ? copy as T : undefined; // the schema has checked it
}

/** Describes the value at a path. Does not repeat values that may be secret. */
function describeValue(root: unknown, path: Path): string {
  const value: unknown = path.reduce((part, key) => Object(part)[key], root);
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  if (typeof value === "object") return Array.isArray(value) ? "an array" : "an object";
  // A whole text may be another file, a URL may have a password before its "@" and a key after its
  // "?", and keys have lines.
  const secret = path.length === 0 ||
    ["oauth", "env", "headers", "arguments"].some((key) => path.includes(key)) ||
    (/[@?\n]/.test(String(value)) && !path.includes("permissions"));
  if (secret) return `a ${typeof value}`;
  return `${typeof value === "string" ? quoted(value) : value} (a ${typeof value})`;
}

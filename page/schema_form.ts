/**
 * Turns the input schema of a tool into fields of a form, and the entered texts into JSON.
 *
 * @module
 */

/** The kinds of fields. A `json` field is for values that fit no other kind. */
export type FieldKind = "text" | "number" | "boolean" | "choice" | "json";

/** One field of a form. */
export interface Field {
  readonly name: string;
  readonly kind: FieldKind;
  readonly isRequired: boolean;
  readonly description: string;
  readonly isInteger: boolean;
  /** The JSON texts of the values of a choice. */
  readonly choices: readonly string[];
  /** The JSON text of the default. */
  readonly initial: string | undefined;
}

/** The texts of the fields, by the names of the fields. A missing field is not an argument. */
export type Entries = ReadonlyMap<string, string>;

type Schema = Readonly<Record<string, unknown>>;

const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

/** Returns the fields of an input schema. */
export function fieldsOf(schema: unknown): readonly Field[] {
  const { properties, required } = objectOf(schema);
  const names = Array.isArray(required) ? required : [];
  const fields = Object.entries(objectOf(properties)).map(([name, property]) =>
    fieldOf(name, objectOf(property), names.includes(name))
  );
  return [...fields.filter((one) => one.isRequired), ...fields.filter((one) => !one.isRequired)];
}

function fieldOf(name: string, schema: Schema, isRequired: boolean): Field {
  const { description, title } = schema;
  const values = "const" in schema ? [schema.const] : Array.isArray(schema.enum) ? schema.enum : [];
  return {
    name,
    kind: values.length > 0 ? "choice" : kindOf(schema.type),
    isRequired,
    description: [description, title].find((one) => typeof one === "string") ?? "",
    isInteger: schema.type === "integer",
    choices: values.map((value) => JSON.stringify(value)),
    initial: "default" in schema ? JSON.stringify(schema.default) : undefined,
  };
}

function kindOf(type: unknown): FieldKind {
  const types = Array.isArray(type) ? type.filter((one) => one !== "null") : [type];
  if (types.length !== 1) return "json";
  switch (types[0]) {
    case "string":
      return "text";
    case "integer":
    case "number":
      return "number";
    case "boolean":
      return "boolean";
    default:
      return "json";
  }
}

function objectOf(value: unknown): Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? value as Schema
    : {};
}

/** Returns the initial texts of the fields. */
export function initialEntries(fields: readonly Field[]): Entries {
  return new Map(
    fields.flatMap(({ name, kind, initial }): [string, string][] => {
      if (initial === undefined) return [];
      const value = JSON.parse(initial);
      return [[name, kind === "text" && typeof value === "string" ? value : initial]];
    }),
  );
}

/** A problem of one field. */
export interface FieldProblem {
  readonly name: string;
  readonly text: string;
}

/**
 * Returns the arguments as JSON text, or the problems of fields. A number keeps the digits that the
 * user typed.
 */
export function argumentsOf(
  fields: readonly Field[],
  entries: Entries,
): { readonly text: string; readonly problems: readonly FieldProblem[] } {
  const problems: FieldProblem[] = [];
  const members = fields.flatMap((field) => {
    const entry = entries.get(field.name);
    if (entry === undefined || entry === "" && field.kind !== "text") {
      if (field.isRequired) problems.push({ name: field.name, text: "is required" });
      return [];
    }
    const value = field.kind === "text" ? JSON.stringify(entry) : entry.trim();
    const text = problemOf(field, value);
    if (text !== undefined) problems.push({ name: field.name, text });
    return [`${JSON.stringify(field.name)}:${value}`];
  });
  return { text: `{${members.join(",")}}`, problems };
}

function problemOf({ kind, isInteger }: Field, value: string): string | undefined {
  if (kind === "number") {
    if (!NUMBER.test(value)) return "is not a number";
    return isInteger && /[.eE]/.test(value) ? "is not an integer" : undefined;
  }
  return isJson(value) ? undefined : "is not JSON";
}

/** Returns whether a text is JSON. */
export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

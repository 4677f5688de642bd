/**
 * Makes parameters of the literals that a person or a model names: in code `args.NAME`, in a plan a
 * reference to the arguments.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { canonical, isObject, type Json, type JsonObject, quoted } from "../core/json.ts";
import { codeParts, type Literal } from "./_code_literals.ts";
import type { Capability } from "./capability.ts";

/** What is made of code or a plan. */
export interface Parametrized {
  readonly text: string;
  /** The JSON Schema of the arguments. */
  readonly parameters: JsonObject;
  /** What the person has to know of it, one line each. */
  readonly notes: readonly string[];
}

const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;
/** How a plan refers to an argument. */
const PARAMETERS = "$params";
/** A reference to an output of an earlier run, which is not kept for ever. */
const OF_RUN = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+(?:#|$)/;
/** A declaration that would hide the arguments. */
const OWN_ARGS = /(?<![\w$.])(?:const|let|var|class|function)\s+args\b/;
/** A text that is shorter stands inside too many others to tell of it. */
const TOLD_LENGTH = 3;

/** Replaces the named literals. Throws BAD_ARGUMENTS if one is not found, or not clear. */
export function parametrized(
  { kind, text }: Pick<Capability, "kind" | "text">,
  named: JsonObject,
): Parametrized {
  const values = Object.entries(named);
  for (const [name, value] of values) {
    if (!NAME.test(name) || name === "__proto__") throw wrong(name, "use letters, digits and _");
    const twin = values.find(([other, each]) => other !== name && same(each, value));
    if (twin !== undefined) {
      throw wrong(name, `${quoted(twin[0])} has the same value, so nobody can tell them apart`);
    }
  }
  const made = kind === "code" ? inCode(text, values) : inPlan(text, values);
  const properties = Object.fromEntries(values.map(([name, value]) => [name, schemaOf(value)]));
  const required = values.map(([name]) => name);
  const parameters: JsonObject = {
    type: "object",
    properties,
    ...(required.length > 0 && { required }),
    additionalProperties: false,
  };
  return { ...made, parameters };
}

type Named = readonly (readonly [string, Json | undefined])[];
type Made = Pick<Parametrized, "text" | "notes">;

function inCode(code: string, named: Named): Made {
  const { literals, bare } = codeParts(code);
  const notes: string[] = [];
  const changes: (Literal & { readonly by: string })[] = [];
  const used = new Set(
    [...bare.matchAll(/(?<![\w$.])args\s*\??\.\s*([A-Za-z_$][\w$]*)/g)].map(([, name]) => name),
  );
  if (named.length > 0 && OWN_ARGS.test(bare)) {
    throw wrong(named[0]?.[0] ?? "", "the code has a variable `args` of its own");
  }
  for (const [name, value] of named) {
    const found = literals.filter((literal) => same(literal.value, value));
    if (found.length === 0 && !used.has(name)) throw wrong(name, notFound(value, literals));
    // A text means the same wherever it stands; a number or a truth value seldom does.
    if (typeof value !== "string" && found.length > 1) {
      throw wrong(
        name,
        `${shown(value)} stands ${found.length} times, so it is not clear which is meant`,
      );
    }
    if (found.length > 1) {
      notes.push(`${name}: ${shown(value)} is replaced in ${found.length} places`);
    }
    const longer = within(value, literals);
    if (found.length > 0 && longer > 0) {
      notes.push(
        `${name}: ${shown(value)} stays inside ${longer} longer text${longer > 1 ? "s" : ""}`,
      );
    }
    for (const literal of found) changes.push({ ...literal, by: `args.${name}` });
    used.delete(name);
  }
  const [unnamed] = used;
  if (unnamed !== undefined) {
    throw wrong(unnamed, `the code reads args.${unnamed}, and no parameter has this name`);
  }
  let text = code;
  for (
    const { start, end, isKey, by } of changes.toSorted((one, other) => other.start - one.start)
  ) {
    text = text.slice(0, start) + (isKey ? `[${by}]` : by) + text.slice(end);
  }
  return { text, notes };
}

function inPlan(text: string, named: Named): Made {
  const notes: string[] = [];
  const counts = new Map<string, number>();
  const texts: string[] = [];
  const replaced = (value: Json): Json => {
    const name = named.find(([, each]) => same(each, value))?.[0];
    if (name !== undefined) {
      counts.set(name, (counts.get(name) ?? 0) + 1);
      return { $ref: `${PARAMETERS}#/${name}` };
    }
    if (typeof value === "string") texts.push(value);
    if (Array.isArray(value)) return value.map(replaced);
    if (!isObject(value)) return value;
    const { $ref, $literal } = value;
    if ($literal !== undefined) {
      const isNamed = named.some(([, each]) => same(each, $literal as Json));
      return isNamed ? replaced($literal as Json) : value as JsonObject;
    }
    if (typeof $ref === "string") {
      if (OF_RUN.test($ref)) throw ofRun($ref);
      const own = new RegExp(`^\\${PARAMETERS}#/([^/]+)`).exec($ref)?.[1];
      if (own !== undefined) counts.set(own, (counts.get(own) ?? 0) + 1);
      return value as JsonObject;
    }
    return Object.fromEntries(
      Object.entries(value as JsonObject).map(([key, each]) => [key, replaced(each as Json)]),
    );
  };
  const plan = JSON.parse(text) as { readonly tasks: readonly JsonObject[] };
  const tasks = plan.tasks.map((task) => ({
    ...task,
    ...("arguments" in task && { arguments: replaced(task.arguments as Json) }),
    ...("for_each" in task && { for_each: replaced(task.for_each as Json) }),
    ...("when" in task && { when: replaced(task.when as Json) }),
  }));
  for (const [name, value] of named) {
    const count = counts.get(name) ?? 0;
    const longer = texts.filter((each) => typeof value === "string" && each.includes(value)).length;
    if (count === 0) {
      throw wrong(name, longer > 0 ? inside(value) : `${shown(value)} is not in the plan`);
    }
    if (typeof value !== "string" && count > 1) {
      throw wrong(name, `${shown(value)} stands ${count} times, so it is not clear which is meant`);
    }
    if (count > 1) notes.push(`${name}: ${shown(value)} is replaced in ${count} places`);
  }
  const unnamed = [...counts.keys()].find((name) => named.every(([each]) => each !== name));
  if (unnamed !== undefined) {
    throw wrong(unnamed, "the plan refers to it, and no parameter has this name");
  }
  return { text: JSON.stringify({ ...plan, tasks }, null, 2), notes };
}

function notFound(value: Json | undefined, literals: readonly Literal[]): string {
  if (value === null || typeof value === "object") {
    return "in code it must be a text, a number, true or false";
  }
  return within(value, literals) > 0 ? inside(value) : `${shown(value)} is no literal of the code`;
}

function inside(value: Json | undefined): string {
  return `${shown(value)} stands only inside a longer text; make it a value of its own first`;
}

/** Returns how many longer texts contain a text. */
function within(value: Json | undefined, literals: readonly Literal[]): number {
  if (typeof value !== "string" || value.length < TOLD_LENGTH) return 0;
  return literals.filter(({ value: each }) =>
    typeof each === "string" && each !== value && each.includes(value)
  ).length;
}

function same(one: Json | undefined, other: Json | undefined): boolean {
  return one !== undefined && other !== undefined && canonical(one) === canonical(other);
}

function schemaOf(value: Json | undefined): JsonObject {
  const type = Array.isArray(value) ? "array" : value === null ? "null" : typeof value;
  return { type };
}

function shown(value: Json | undefined): string {
  return quoted(typeof value === "string" ? value : JSON.stringify(value) ?? "");
}

function ofRun(ref: string): PmlError {
  const why = `it takes ${quoted(ref)}, an output of an earlier run that is not kept`;
  return new PmlError("BAD_ARGUMENTS", `Cannot save the plan: ${why}`, {
    hint: "Put the task that gives it into the plan",
  });
}

function wrong(name: string, why: string): PmlError {
  return new PmlError("BAD_ARGUMENTS", `Cannot make a parameter ${quoted(name)}: ${why}`, {
    hint: 'Name each value as it stands in what ran: one literal, such as {"city": "Paris"}',
  });
}

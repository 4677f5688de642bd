/**
 * Compiles the schemas of a module as the gateway does, and tries them. No tool is called.
 *
 * @module
 */

import { asPmlError } from "../core/errors.ts";
import { isObject, type Json, type JsonObject, listOf, quoted, visible } from "../core/json.ts";
import { nearName } from "../core/near_name.ts";
import type { ModuleTool } from "../core/tool.ts";
import { exampleOf, wrongOf } from "./_example.ts";
import type { Say } from "./_finding.ts";

/** A schema as the gateway uses it. */
export interface CompiledSchema {
  /** The keywords that it cannot check. */
  readonly unchecked: ReadonlySet<string>;
  /** Checks a value. `why` says why it does not fit, or why that cannot be decided. */
  check(value: unknown): { readonly kind: string; readonly why?: string };
  /** Returns whether a text matches a pattern of the schema. */
  matches(text: string, pattern: string): boolean;
}

/** Compiles a schema as the gateway does before a call. */
export type CompileSchema = (schema: JsonObject) => Promise<CompiledSchema>;

/** How a schema is compiled, and where findings go. */
interface CompileOptions {
  readonly compile: CompileSchema;
  readonly say: Say;
}

/** The schema of a tool's arguments. */
export interface Compiled {
  readonly name: string;
  readonly schema: JsonObject;
  readonly compiled: CompiledSchema;
}

/** Compiles every schema, and returns those of arguments. */
export async function compileAll(
  tools: readonly ModuleTool[],
  options: CompileOptions,
): Promise<readonly Compiled[]> {
  const all: Compiled[] = [];
  for (const { definition: { name, inputSchema: schema, outputSchema } } of tools) {
    const compiled = await compile(`inputSchema of ${quoted(name)}`, schema, options);
    if (compiled !== undefined) all.push({ name, schema, compiled });
    if (outputSchema === undefined) continue;
    const what = `outputSchema of ${quoted(name)}`;
    const output = await compile(what, outputSchema, options);
    const wrong = output?.check(exampleOf(outputSchema, output)).why;
    if (wrong !== undefined) {
      options.say("warning", `no result was found that ${what} accepts: ${wrong}`, {
        hint: 'Add some to it, as "examples": [{…}]',
      });
    }
  }
  return all;
}

async function compile(
  what: string,
  schema: JsonObject,
  { compile, say }: CompileOptions,
): Promise<CompiledSchema | undefined> {
  try {
    const compiled = await compile(schema);
    sayRequired(what, schema, say);
    if (compiled.unchecked.size === 0) return compiled;
    for (const type of unknownTypes(schema)) {
      const near = nearName(type, TYPES);
      const meant = near === undefined ? `one of ${TYPES.join(", ")}` : quoted(near);
      say("failed", `${what} has the unknown type ${quoted(type)}`, { hint: `Write ${meant}` });
    }
    for (const keyword of compiled.unchecked) {
      say("failed", `${what} uses a keyword that cannot be checked: ${visible(keyword, 300)}`, {
        hint: "Nothing else checks arguments of a module: do not use it",
      });
    }
  } catch (error) {
    const why = asPmlError(error).message.replace("Cannot use a tool's schema: ", "");
    say("failed", `${what} cannot be used: ${visible(why, 300)}`, {
      hint: "Write plain JSON Schema 2020-12: local $ref, less depth and size",
    });
  }
  return undefined;
}

const TYPES = ["string", "number", "integer", "boolean", "object", "array", "null"];

/** Returns the types in a schema that JSON Schema does not have. */
function unknownTypes(schema: Json): readonly string[] {
  if (Array.isArray(schema)) return schema.flatMap(unknownTypes);
  if (!isObject(schema)) return [];
  const own = [schema.type].flat().filter((type) => typeof type === "string") as string[]; // just filtered
  const inner = Object.entries(schema).filter(([name]) =>
    !/^(?:default|const|enum|examples)$/.test(name)
  );
  return [
    ...own.filter((type) => !TYPES.includes(type)),
    ...inner.flatMap(([, value]) => unknownTypes(value as Json)), // a part of JSON is JSON
  ];
}

/** Warns of required arguments that are no property: they are often mistyped. */
function sayRequired(what: string, { required, properties }: JsonObject, say: Say): void {
  if (!Array.isArray(required) || !isObject(properties)) return;
  const names = Object.keys(properties);
  for (const name of required.map(String).filter((one) => !names.includes(one))) {
    const near = nearName(name, names);
    say("warning", `${what} requires ${quoted(name)}, which is none of its properties`, {
      hint: near === undefined ? "Describe it under properties" : `Did you mean ${quoted(near)}?`,
    });
  }
}

/**
 * Tries each schema with arguments that fit and with some that do not. Returns the fitting ones by
 * tool. No function is called.
 */
export function sayArguments(all: readonly Compiled[], say: Say): ReadonlyMap<string, Json> {
  const examples = new Map<string, Json>();
  let refused = 0;
  for (const { name, schema, compiled } of all) {
    const validate = (value: unknown) => compiled.check(value).why;
    const wrong = listOf(schema.examples).map(validate)
      .find((said) => said !== undefined);
    if (wrong !== undefined) {
      say("failed", `an example of ${quoted(name)} does not fit its own schema: ${wrong}`, {
        hint: 'Fix "examples" in inputSchema',
      });
      continue;
    }
    const example = exampleOf(schema, compiled);
    const unfit = validate(example);
    if (unfit !== undefined) {
      say("warning", `no arguments were found that ${quoted(name)} accepts: ${unfit}`, {
        hint: 'Add some to inputSchema, as "examples": [{…}]',
      });
      continue;
    }
    examples.set(name, example);
    const fits = (value: unknown) => validate(value) === undefined;
    const tried = wrongOf(schema, { example, fits });
    refused += tried.wrong.length;
    for (const property of tried.open) {
      say("warning", `${quoted(property)} of ${quoted(name)} accepts every kind of value`, {
        hint: "Give it a type",
      });
    }
  }
  say("ok", `calls that fit are accepted (${examples.size}), others are refused (${refused})`);
  return examples;
}

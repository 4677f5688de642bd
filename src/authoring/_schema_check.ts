/**
 * Checks the schemas of a module as calls do, and tries them with example values. Calls no tool.
 *
 * @module
 */

import { asPmlError } from "../core/errors.ts";
import { isObject, type Json, type JsonObject, listOf, quoted, visible } from "../core/json.ts";
import { nearName } from "../core/near_name.ts";
import type { ModuleTool } from "../protocol/tool.ts";
import { exampleOf, findWrongArguments } from "./_example.ts";
import type { ReportFinding } from "./_finding.ts";

/** Checks values against schemas as calls do. */
export interface SchemaChecker {
  /** Throws if a schema cannot be used. */
  assertUsable(schema: JsonObject): Promise<void>;
  /** Returns why a value does not match a schema; undefined if it does. */
  wrong(schema: JsonObject, value: unknown): Promise<string | undefined>;
  /** Returns whether a text matches a pattern of a schema. */
  matches(text: string, pattern: string): Promise<boolean>;
}

/** The schema of a tool's arguments. */
export interface ArgumentsSchema {
  readonly name: string;
  readonly schema: JsonObject;
}

/** Checks every schema, and returns the usable schemas of arguments. */
export async function usableSchemas(
  tools: readonly ModuleTool[],
  checker: SchemaChecker,
  report: ReportFinding,
): Promise<readonly ArgumentsSchema[]> {
  const isUsable = (what: string, schema: JsonObject) =>
    isUsableSchema({ what, schema }, checker, report);
  const all: ArgumentsSchema[] = [];
  for (const { definition: { name, inputSchema: schema, outputSchema } } of tools) {
    if (await isUsable(`inputSchema of ${quoted(name)}`, schema)) {
      all.push({ name, schema });
    }
    if (outputSchema === undefined) continue;
    const what = `outputSchema of ${quoted(name)}`;
    if (!await isUsable(what, outputSchema)) continue;
    const wrong = await checker.wrong(outputSchema, await exampleOf(outputSchema, checker));
    if (wrong !== undefined) {
      report("warning", `no result was found that ${what} accepts: ${wrong}`, {
        hint: 'Add some to it, as "examples": [{…}]',
      });
    }
  }
  return all;
}

async function isUsableSchema(
  { what, schema }: { readonly what: string; readonly schema: JsonObject },
  checker: SchemaChecker,
  report: ReportFinding,
): Promise<boolean> {
  try {
    await checker.assertUsable(schema);
    reportRequired(what, schema, report);
    const unknown = unknownTypes(schema);
    for (const type of unknown) {
      const near = nearName(type, TYPES);
      const suggestion = near === undefined ? `one of ${TYPES.join(", ")}` : quoted(near);
      report("failed", `${what} has the unknown type ${quoted(type)}`, {
        hint: `Write ${suggestion}`,
      });
    }
    return unknown.length === 0;
  } catch (error) {
    const why = asPmlError(error).message.replace("Cannot use a tool's schema: ", "");
    report("failed", `${what} cannot be used: ${visible(why, 300)}`, {
      hint: "Write plain JSON Schema 2020-12: local $ref, less depth and size",
    });
    return false;
  }
}

const TYPES = ["string", "number", "integer", "boolean", "object", "array", "null"];

/** Returns the types in a schema that JSON Schema does not have. */
function unknownTypes(schema: Json): readonly string[] {
  if (Array.isArray(schema)) return schema.flatMap(unknownTypes);
  if (!isObject(schema)) return [];
  const types = [schema.type].flat().filter((type) => typeof type === "string") as string[]; // just filtered
  const inner = Object.entries(schema).filter(([name]) =>
    !/^(?:default|const|enum|examples)$/.test(name)
  );
  return [
    ...types.filter((type) => !TYPES.includes(type)),
    ...inner.flatMap(([, value]) => unknownTypes(value as Json)), // a part of JSON is JSON
  ];
}

/**
 * Warns about required arguments that are not among the properties, which are often typing errors.
 */
function reportRequired(
  what: string,
  { required, properties }: JsonObject,
  report: ReportFinding,
): void {
  if (!Array.isArray(required) || !isObject(properties)) return;
  const names = Object.keys(properties);
  for (const name of required.map(String).filter((one) => !names.includes(one))) {
    const near = nearName(name, names);
    report("warning", `${what} requires ${quoted(name)}, which is none of its properties`, {
      hint: near === undefined ? "Describe it under properties" : `Did you mean ${quoted(near)}?`,
    });
  }
}

/**
 * Tries each schema with arguments that match and with some that do not. Returns the matching
 * arguments by tool. Calls no function.
 */
export async function reportArguments(
  all: readonly ArgumentsSchema[],
  checker: SchemaChecker,
  report: ReportFinding,
): Promise<ReadonlyMap<string, Json>> {
  const examples = new Map<string, Json>();
  let refused = 0;
  for (const { name, schema } of all) {
    const validate = (value: unknown) => checker.wrong(schema, value);
    const [wrong] = (await Promise.all(listOf(schema.examples).map(validate)))
      .filter((problem) => problem !== undefined);
    if (wrong !== undefined) {
      report("failed", `an example of ${quoted(name)} does not fit its own schema: ${wrong}`, {
        hint: 'Fix "examples" in inputSchema',
      });
      continue;
    }
    const example = await exampleOf(schema, checker);
    const unfit = await validate(example);
    if (unfit !== undefined) {
      report("warning", `no arguments were found that ${quoted(name)} accepts: ${unfit}`, {
        hint: 'Add some to inputSchema, as "examples": [{…}]',
      });
      continue;
    }
    examples.set(name, example);
    const fits = async (value: unknown) => await validate(value) === undefined;
    const tried = await findWrongArguments(schema, { example, fits });
    refused += tried.wrong.length;
    for (const property of tried.open) {
      report("warning", `${quoted(property)} of ${quoted(name)} accepts every kind of value`, {
        hint: "Give it a type",
      });
    }
  }
  report("ok", `calls that fit are accepted (${examples.size}), others are refused (${refused})`);
  return examples;
}

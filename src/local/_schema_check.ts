/**
 * Compiles the schemas of a module as the gateway does, and tries them; no tool is called.
 *
 * @module
 */

import { asPmlError } from "../core/errors.ts";
import { type Json, type JsonObject, quoted, visible } from "../core/json.ts";
import type { ModuleTool } from "../core/tool.ts";
import { exampleOf, wrongOf } from "./_example.ts";
import type { Say } from "./_finding.ts";

/** Compiles a schema as the gateway does before a call; what it gives says what is wrong. */
export type CompileSchema = (
  schema: JsonObject,
) => Promise<(value: unknown) => string | undefined>;

interface CompileOptions {
  readonly compile: CompileSchema;
  readonly say: Say;
}

/** The schema of a tool's arguments. */
export interface Compiled {
  readonly name: string;
  readonly schema: JsonObject;
  readonly validate: (value: unknown) => string | undefined;
}

/** Compiles every schema, and gives those of arguments. */
export async function compileAll(
  tools: readonly ModuleTool[],
  options: CompileOptions,
): Promise<readonly Compiled[]> {
  const compiled: Compiled[] = [];
  for (const { definition: { name, inputSchema: schema, outputSchema } } of tools) {
    const validate = await validator(`inputSchema of ${quoted(name)}`, schema, options);
    if (validate !== undefined) compiled.push({ name, schema, validate });
    if (outputSchema === undefined) continue;
    const what = `outputSchema of ${quoted(name)}`;
    const wrong = (await validator(what, outputSchema, options))?.(
      exampleOf(outputSchema, outputSchema),
    );
    if (wrong !== undefined) {
      options.say("warning", `no result was found that ${what} accepts: ${wrong}`, {
        hint: 'Write some into it, as "examples": [{…}]',
      });
    }
  }
  return compiled;
}

async function validator(
  what: string,
  schema: JsonObject,
  { compile, say }: CompileOptions,
): Promise<Compiled["validate"] | undefined> {
  try {
    const validate = await compile(schema);
    // A pattern that is none is found when it is used.
    return (value) => tried(() => validate(value));
  } catch (error) {
    const why = asPmlError(error).message.replace("Cannot use a tool's schema: ", "");
    say("failed", `${what} cannot be used: ${visible(why, 300)}`, {
      hint: "Write plain JSON Schema 2020-12: local $ref, simple patterns, bounded depth",
    });
    return undefined;
  }
}

/** Tries each schema on arguments that fit and on some that do not; no function is called. */
export function sayArguments(compiled: readonly Compiled[], say: Say): ReadonlyMap<string, Json> {
  const examples = new Map<string, Json>();
  let refused = 0;
  for (const { name, schema, validate } of compiled) {
    const wrong = (Array.isArray(schema.examples) ? schema.examples : []).map(validate)
      .find((said) => said !== undefined);
    if (wrong !== undefined) {
      say("failed", `an example of ${quoted(name)} does not fit its own schema: ${wrong}`, {
        hint: 'Mend "examples" in inputSchema',
      });
      continue;
    }
    const example = exampleOf(schema, schema);
    const unfit = validate(example);
    if (unfit !== undefined) {
      say("warning", `no arguments were found that ${quoted(name)} accepts: ${unfit}`, {
        hint: 'Write some into inputSchema, as "examples": [{…}]',
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
  say("ok", `${examples.size} calls that fit are accepted, ${refused} that do not are refused`);
  return examples;
}

function tried(validate: () => string | undefined): string | undefined {
  try {
    return validate();
  } catch (error) {
    return visible(String(error), 300);
  }
}

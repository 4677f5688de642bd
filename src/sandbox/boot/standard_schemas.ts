/**
 * Schemas that are code: a module may use a Standard Schema (https://standardschema.dev) that can
 * return its JSON Schema, for example a schema of zod.
 *
 * @module
 */

import { withBigInts, withNumbers } from "./exact_values.ts";
import type { SentError } from "./message.ts";

/** One problem with a value. */
interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

type ValidationResult = { readonly value: unknown; readonly issues?: undefined } | {
  readonly issues: readonly SchemaIssue[];
};

/** The members of a Standard Schema that PML uses. */
interface StandardSchema {
  readonly "~standard": {
    readonly validate: (value: unknown) => ValidationResult | Promise<ValidationResult>;
    readonly jsonSchema?: Readonly<
      Record<"input" | "output", (options: { readonly target: string }) => unknown>
    >;
  };
}

/** The schemas of one tool that are code. */
interface ToolSchemas {
  readonly input?: StandardSchema | undefined;
  readonly output?: StandardSchema | undefined;
}

const TARGETS = ["draft-2020-12", "draft-07"];
const MOST_ISSUES = 5;

/** The schemas of a module that are code. */
export class StandardSchemas {
  /** The metadata of the module, with JSON Schemas in place of code. */
  readonly meta: unknown;
  readonly #tools = new Map<string, ToolSchemas>();

  /** Reads the metadata of a module. Throws if a schema has no JSON Schema. */
  constructor(meta: unknown) {
    const { tools } = Object(meta);
    if (Object(tools) !== tools) {
      this.meta = meta;
      return;
    }
    const plain = Object.entries(tools).map((
      [name, tool],
    ) => [name, this.#withJsonSchemas(name, tool)]);
    this.meta = this.#tools.size === 0
      ? meta
      : { ...Object(meta), tools: Object.fromEntries(plain) };
  }

  /** Returns the arguments of a tool as parsed by its schema. Throws `BAD_ARGUMENTS`. */
  async input(name: string, args: unknown): Promise<unknown> {
    const schema = this.#tools.get(name)?.input;
    if (schema === undefined) return args;
    // Schema libraries refuse BigInts as numbers.
    const result = await schema["~standard"].validate(withNumbers(args));
    if (result.issues === undefined) return withBigInts(result.value, args);
    throw failure("BAD_ARGUMENTS", `Cannot call "${name}": ${textOf(result.issues)}`);
  }

  /** Throws OUTPUT_INVALID if a structured result does not match the schema of its tool. */
  async assertOutput(name: string, value: unknown): Promise<void> {
    const schema = this.#tools.get(name)?.output;
    if (schema === undefined) return;
    const { content, structuredContent, isError } = Object(value);
    const isResult = Array.isArray(content);
    if (isResult && isError === true) return;
    const structured = withNumbers(isResult ? structuredContent : value);
    const { issues } = await schema["~standard"].validate(structured);
    if (issues === undefined) return;
    const why = `it does not match outputSchema: ${textOf(issues)}`;
    throw failure("OUTPUT_INVALID", `Cannot return the result: ${why}`);
  }

  #withJsonSchemas(name: string, tool: unknown): unknown {
    const { inputSchema, outputSchema } = Object(tool);
    const input = isStandard(inputSchema) ? inputSchema : undefined;
    const output = isStandard(outputSchema) ? outputSchema : undefined;
    if (input === undefined && output === undefined) return tool;
    this.#tools.set(name, { input, output });
    const what = (kind: string) => `${kind} of "${name}"`;
    return {
      ...Object(tool),
      ...(input && { inputSchema: jsonSchemaOf(input, "input", what("inputSchema")) }),
      ...(output && { outputSchema: jsonSchemaOf(output, "output", what("outputSchema")) }),
    };
  }
}

function isStandard(value: unknown): value is StandardSchema {
  return Object(value) === value &&
    typeof (value as Partial<StandardSchema>)["~standard"]?.validate === "function";
}

function jsonSchemaOf(
  schema: StandardSchema,
  side: "input" | "output",
  what: string,
): unknown {
  const { jsonSchema } = schema["~standard"];
  if (jsonSchema === undefined) throw new TypeError(`The ${what} is code without a JSON Schema`);
  let reason: unknown;
  for (const target of TARGETS) {
    try {
      return jsonSchema[side]({ target });
    } catch (error) {
      reason ??= error;
    }
  }
  const why = reason instanceof Error ? reason.message : reason;
  throw new TypeError(`The ${what} cannot be written as JSON Schema: ${why}`);
}

function textOf(issues: readonly SchemaIssue[]): string {
  return issues.slice(0, MOST_ISSUES).map(({ message, path = [] }) => {
    const place = path.map((part) => String(typeof part === "object" ? part.key : part)).join(".");
    return place === "" ? message : `${place}: ${message}`;
  }).join("; ");
}

function failure(code: string, message: string): SentError {
  return { name: "Error", message, code };
}

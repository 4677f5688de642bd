/**
 * Checks arguments before a tool sees them, and structured results before a client does.
 *
 * @module
 */

import type { Call, Gate, ToolResult } from "../core/call.ts";
import { PmlError } from "../core/errors.ts";
import type { JsonObject } from "../core/json.ts";
import { visible } from "../core/json.ts";
import type { ToolId } from "../core/tool_id.ts";
import type { ToolDefinition } from "../core/tool.ts";
import { checkable, unsafeSchema } from "./_safe_schema.ts";

/** Says what is wrong with a value, or nothing. */
export type Validate = (value: unknown) => string | undefined;

/**
 * Compiles JSON Schemas (2020-12 and the dialects before it) once each.
 *
 * The validator interprets schemas: the other one of the SDK turns them into code, and these
 * come from others.
 */
export class Schemas {
  readonly #compiled = new WeakMap<JsonObject, Promise<Validate>>();

  /** Gives the check for a schema. */
  validator(schema: JsonObject): Promise<Validate> {
    const known = this.#compiled.get(schema);
    if (known !== undefined) return known;
    const compiling = compile(schema);
    this.#compiled.set(schema, compiling);
    return compiling;
  }
}

/** Refuses a call whose arguments do not fit the tool's schema, and a result that does not. */
export function schemaGate(
  schemas: Schemas,
  definitionOf: (call: Call) => Promise<ToolDefinition>,
): Gate {
  let sdk: Promise<typeof import("@modelcontextprotocol/server")> | undefined;
  return (next) => async (call) => {
    // What is no tool's is between the client and the server.
    if (call.method !== undefined) return await next(call);
    const definition = await definitionOf(call);
    const wrong = (await schemas.validator(definition.inputSchema))(call.arguments);
    if (wrong !== undefined) throw badArguments(call.id, wrong);
    const outcome = await next(call);
    if (outcome.kind !== "result") return outcome;
    // Kept, because even the import of what is there takes time.
    const { isCallToolResult } = await (sdk ??= import("@modelcontextprotocol/server"));
    // The SDK would refuse it too, but as if the client had asked wrongly.
    if (!isCallToolResult(outcome.result)) throw badResult(call.id, "it is no result of MCP");
    await checkOutput(schemas, { definition, id: call.id, result: outcome.result });
    return outcome;
  };
}

/** Makes the error that a model can mend its call by. */
export function badArguments(name: string, wrong: string): PmlError {
  return new PmlError("BAD_ARGUMENTS", `Cannot call "${name}": ${wrong}`, {
    hint: `Ask \`schema\` for "${name}" and call again with arguments that fit`,
  });
}

async function checkOutput(
  schemas: Schemas,
  from: {
    readonly definition: ToolDefinition;
    readonly id: ToolId;
    readonly result: ToolResult;
  },
): Promise<void> {
  const { definition: { outputSchema }, id, result } = from;
  if (outputSchema === undefined || result.isError === true) return;
  const wrong = (await schemas.validator(outputSchema))(result.structuredContent);
  if (wrong !== undefined) throw badResult(id, wrong);
}

function badResult(id: ToolId, wrong: string): PmlError {
  return new PmlError("OUTPUT_INVALID", `Cannot use what "${id}" returned: ${wrong}`, {
    hint: "The tool breaks its own output schema, or MCP's: tell its author",
  });
}

async function compile(schema: JsonObject): Promise<Validate> {
  const { CfWorkerJsonSchemaValidator } = await import(
    "@modelcontextprotocol/server/validators/cf-worker"
  );
  const unsafe = unsafeSchema(schema);
  if (unsafe !== undefined) throw unusable(unsafe);
  const validate = usable(() => new CfWorkerJsonSchemaValidator().getValidator(checkable(schema)));
  return (value) => {
    if (!isWritable(value)) return "there is a number too large for JSON to carry on";
    const result = validate(value);
    return result.valid ? undefined : visible(readable(result.errorMessage), 500);
  };
}

/** `1e400` reads as infinite and would be written as null: not what was judged and shown. */
function isWritable(value: unknown): boolean {
  const left: unknown[] = [value];
  while (left.length > 0) {
    const next = left.pop();
    if (typeof next === "number" && !Number.isFinite(next)) return false;
    if (typeof next !== "object" || next === null) continue;
    for (const item of Object.values(next)) left.push(item);
  }
  return true;
}

function usable<T>(compiled: () => T): T {
  try {
    return compiled();
  } catch (cause) {
    throw unusable(cause instanceof Error ? visible(cause.message) : "it is no JSON Schema", cause);
  }
}

function unusable(why: string, cause?: unknown): PmlError {
  return new PmlError("UPSTREAM_PROTOCOL", `Cannot use a tool's schema: ${why}`, {
    hint: "The tool's author has to mend its schema",
    cause,
  });
}

/** Says in a person's words what the validator found: `#/a/0: …` is `a.0: …` here. */
function readable(message: string): string {
  const found = message.split("; ")
    .map((one) => one.replace(/\.$/, "").replace(/^#\/?([^:]*): /, placeOf))
    // What is said of the property that must not be there is said of its object already.
    .filter((one) => !one.endsWith("False boolean schema"))
    // A place that is named for itself needs no word about its parents.
    .filter((one, _, all) =>
      all.length === 1 || !/^Property "[^"]*" does not match schema$/.test(one)
    )
    .map((one) => one.replace(" does not match additional properties schema", " is unknown"))
    .map((one) => one.replace(/^Instance does not have /, "there is no "));
  return [...new Set(found)].join("; ");
}

function placeOf(_: string, pointer: string): string {
  return pointer === "" ? "" : `${pointer.replaceAll("/", ".")}: `;
}

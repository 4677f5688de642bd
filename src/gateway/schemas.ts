/**
 * Checks the arguments of modules and of PML's own tools before a call, and the results of modules.
 * Other servers check their own arguments, and their results are delivered as they are.
 *
 * @module
 */

import type { Outcome, ToolResult } from "../core/call.ts";
import { PmlError } from "../core/errors.ts";
import { isObject, type JsonObject, visible } from "../core/json.ts";
import type { Maybe } from "../core/maybe.ts";
import type { PassGate, PassOutcome, Server } from "../core/server.ts";
import type { ToolDefinition } from "../core/tool.ts";
import type { ToolId } from "../core/tool_id.ts";
import { turn } from "../io/waiting.ts";
import type { Checked, JsonSchema } from "./_json_schema.ts";
import { Turns, unsafeSchema } from "./_safe_schema.ts";

/** The tool of a call. */
export interface CheckedTool {
  readonly id: ToolId;
  readonly definition: ToolDefinition;
  readonly server: Pick<Server, "checksArguments">;
}

/** After so many steps of checks others get their turn. */
const TURN = 400_000;

/**
 * Reads JSON Schemas (2020-12 and the dialects before it) once each, and checks values against
 * them. However many there are to check, others get their turn in between.
 */
export class Schemas {
  readonly #read = new WeakMap<JsonObject, Promise<JsonSchema>>();
  /** The schemas that were read. */
  readonly #known = new WeakMap<JsonObject, JsonSchema>();
  /** How many steps were taken since others had their turn. */
  #taken = 0;
  #turn = Promise.resolve();

  /** Gives a schema as values are checked against it. */
  read(schema: JsonObject): Promise<JsonSchema> {
    const known = this.#read.get(schema);
    if (known !== undefined) return known;
    const reading = read(schema);
    this.#read.set(schema, reading);
    reading.then((read) => this.#known.set(schema, read), () => {}); // who asked is told
    return reading;
  }

  /** Returns whether a value fits a schema that was read, if that can be told at once. */
  fitsAtOnce(schema: JsonObject, value: unknown): boolean {
    const read = this.#taken > TURN ? undefined : this.#known.get(schema);
    return read?.check(value, (steps) => this.#taken += steps).kind === "fits";
  }

  /** Checks a value. */
  async check(schema: JsonObject, value: unknown): Promise<Checked> {
    const read = await this.read(schema);
    while (this.#taken > TURN) await (this.#turn = this.#turn.then(() => this.#others()));
    return read.check(value, (steps) => this.#taken += steps);
  }

  /**
   * Checks the arguments of a call. Throws or rejects with BAD_ARGUMENTS. Returns undefined at once
   * for a server that checks its own arguments.
   */
  arguments(args: JsonObject, { id, definition, server }: CheckedTool): Maybe<void> {
    if (server.checksArguments) return undefined;
    return this.assertArguments(definition, args, id);
  }

  /** Rejects with BAD_ARGUMENTS if arguments do not match the schema of a tool. */
  async assertArguments(
    { inputSchema }: ToolDefinition,
    args: JsonObject,
    name: string,
  ): Promise<void> {
    const checked = await this.check(inputSchema, args);
    if (checked.kind !== "fits") throw badArguments(name, checked.why);
  }

  /**
   * Returns an outcome as its client can use it. Throws or rejects with OUTPUT_INVALID for the
   * result of a module that does not match its schema.
   */
  fitting<O extends PassOutcome>(outcome: O, tool: CheckedTool): Maybe<O> {
    if (tool.server.checksArguments) return outcome;
    if (outcome.kind !== "result" || outcome.task !== undefined) return outcome;
    const { outputSchema } = tool.definition;
    const hasSchema = outputSchema !== undefined && outcome.result.isError !== true;
    if (!hasSchema && isPlain(outcome.result)) return outcome;
    return this.#checked(outcome, tool) as Promise<O>;
  }

  async #checked(
    outcome: Extract<Outcome, { readonly kind: "result" }>,
    { id, definition: { outputSchema } }: CheckedTool,
  ): Promise<Outcome> {
    const { result } = outcome;
    // A client would refuse all of the result.
    if (!isPlain(result) && !await isResult(result)) throw badResult(id, "it is no result of MCP");
    if (outputSchema === undefined || result.isError === true) return outcome;
    const checked = await this.check(outputSchema, result.structuredContent);
    if (checked.kind === "fits") return outcome;
    if (checked.kind === "unchecked") return { ...outcome, isUnchecked: true };
    throw badResult(id, checked.why);
  }

  /** Names the keywords of a tool that are not checked; undefined where all are. */
  async unchecked(
    { inputSchema, outputSchema = {} }: ToolDefinition,
  ): Promise<readonly string[] | undefined> {
    const all = await Promise.all([inputSchema, outputSchema].map((one) => this.read(one)));
    const names = new Set(all.flatMap(({ unchecked }) => [...unchecked]));
    return names.size === 0 ? undefined : [...names];
  }

  async #others(): Promise<void> {
    await turn();
    this.#taken = 0;
  }
}

/** Refuses a call whose arguments do not match the tool's schema, and a result that does not. */
export function schemaGate(schemas: Schemas): PassGate {
  return (next) => async (call) => {
    // Requests other than tools/call have no schema.
    if (call.method !== undefined) return await next(call);
    const { id, pass: { server } } = call;
    const definition = await call.pass.definition();
    // guard: marked-arguments
    call.agrees?.(definition);
    const tool = { id, definition, server };
    // guard: schema-arguments
    await schemas.arguments(call.arguments, tool);
    return await schemas.fitting(await next(call), tool);
  };
}

/** Returns whether a result is only text, so that the SDK need not be loaded to look at it. */
export function isPlain({ content, isError = false, _meta = {} }: ToolResult): boolean {
  return typeof isError === "boolean" && isObject(_meta) && Array.isArray(content) &&
    content.every(isPlainText);
}

function isPlainText(block: unknown): boolean {
  if (!isObject(block) || "annotations" in block) return false;
  const { type, text, _meta = {} } = block;
  return type === "text" && typeof text === "string" && isObject(_meta);
}

/** Looks at one block after the other: the SDK says all that is wrong with all of them, which takes long. */
async function isResult({ content, ...rest }: ToolResult): Promise<boolean> {
  const { isCallToolResult: is } = await import("@modelcontextprotocol/server");
  return is({ ...rest, content: [] }) &&
    (!Array.isArray(content) ? is({ content }) : content.every((one) => is({ content: [one] })));
}

/** Returns the error that tells a model what is wrong with its arguments. */
export function badArguments(name: string, wrong: string): PmlError {
  const why = wrong.replace(/there is no required property "([^"]*)"/g, "Missing argument: $1");
  return new PmlError("BAD_ARGUMENTS", `Cannot call "${name}": ${why}`, {
    hint: `Ask \`schema\` for "${name}" and call again with arguments that fit`,
  });
}

function badResult(id: ToolId, wrong: string): PmlError {
  return new PmlError("OUTPUT_INVALID", `Cannot use what "${id}" returned: ${wrong}`, {
    hint: "It did run. The tool breaks its own output schema, or MCP's: tell its author",
    detail: { may_have_run: true },
  });
}

async function read(schema: JsonObject): Promise<JsonSchema> {
  const unsafe = unsafeSchema(schema);
  if (unsafe !== undefined) throw unusable(unsafe);
  const { JsonSchema } = await import("./_json_schema.ts");
  const turns = new Turns();
  try {
    const read = await JsonSchema.read(schema);
    // What comes next is a check, which takes its own time.
    await turns.next();
    return read;
  } catch (cause) {
    throw unusable(cause instanceof Error ? visible(cause.message) : "it is no JSON Schema", cause);
  }
}

function unusable(why: string, cause?: unknown): PmlError {
  return new PmlError("UPSTREAM_PROTOCOL", `Cannot use a tool's schema: ${why}`, {
    hint: "The tool's author has to correct its schema",
    cause,
  });
}

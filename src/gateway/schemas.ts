/**
 * Checks arguments before a tool sees them, and structured results before a client does.
 *
 * @module
 */

import { type Outcome, textResult, type ToolResult } from "../core/call.ts";
import { PmlError } from "../core/errors.ts";
import { isObject, type JsonObject, objectOf, visible } from "../core/json.ts";
import type { PassGate, PassOutcome } from "../core/server.ts";
import type { ToolDefinition } from "../core/tool.ts";
import type { ToolId } from "../core/tool_id.ts";
import { turn } from "../io/waiting.ts";
import type { Checked, JsonSchema } from "./_json_schema.ts";
import { Turns, unsafeSchema } from "./_safe_schema.ts";

/** The tool whose result is checked. */
interface CheckedTool {
  readonly id: ToolId;
  readonly definition: ToolDefinition;
  /** Whether its server checks arguments and results itself. */
  readonly isChecked: boolean;
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
   * Throws for arguments that do not fit; also where a keyword cannot be checked, unless the server
   * checks them itself.
   */
  async assertArguments(
    { inputSchema }: ToolDefinition,
    args: JsonObject,
    { name, isChecked }: { readonly name: string; readonly isChecked: boolean },
  ): Promise<void> {
    const checked = await this.check(inputSchema, args);
    const isLeft = checked.kind === "unchecked" && checked.keyword !== undefined && isChecked;
    if (checked.kind !== "fits" && !isLeft) throw badArguments(name, checked.why);
  }

  /**
   * Returns an outcome as its client can use it. Throws OUTPUT_INVALID for one of a module that does
   * not fit. It is no promise where nothing has to be looked at for long.
   */
  fitting<O extends PassOutcome>(outcome: O, of: CheckedTool): O | Promise<O> {
    if (outcome.kind !== "result" || outcome.task !== undefined) return outcome;
    const { outputSchema } = of.definition;
    // Results of servers were corrected when they came.
    const isLooked = of.isChecked || isPlain(outcome.result);
    if (isLooked && (outputSchema === undefined || outcome.result.isError === true)) return outcome;
    return this.#looked(outcome, { ...of, isLooked }) as Promise<O>;
  }

  async #looked(
    outcome: Extract<Outcome, { readonly kind: "result" }>,
    { id, definition: { outputSchema }, isChecked, isLooked }: CheckedTool & {
      readonly isLooked: boolean;
    },
  ): Promise<Outcome> {
    // A client would refuse all of the result.
    if (!isLooked && !await isResult(outcome.result)) {
      throw badResult(id, "it is no result of MCP");
    }
    const { structuredContent, isError } = outcome.result;
    if (outputSchema === undefined || isError === true) return outcome;
    const checked = await this.check(outputSchema, structuredContent);
    if (checked.kind === "fits") return outcome;
    if (checked.kind === "unchecked") return { ...outcome, isUnchecked: true };
    const unfit = badResult(id, checked.why);
    // A module is told what it returned wrongly; of a server everything is kept that it said.
    if (!isChecked) throw unfit;
    return { kind: "result", result: remarked(outcome.result, unfit), code: unfit.code };
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

/** Refuses a call whose arguments do not fit the tool's schema, and a result that does not. */
export function schemaGate(schemas: Schemas): PassGate {
  return (next) => async (call) => {
    // What is no tool's is between the client and the server.
    if (call.method !== undefined) return await next(call);
    const { id } = call;
    const definition = await call.pass.definition();
    // guard: marked-arguments
    call.agrees?.(definition);
    const { checksArguments: isChecked } = call.pass.server;
    // guard: schema-arguments
    await schemas.assertArguments(definition, call.arguments, { name: id, isChecked });
    const outcome = await next(call);
    return await schemas.fitting(outcome, { id, definition, isChecked });
  };
}

/**
 * Keeps what a server said in a result that breaks its own schema. A client that checks structured
 * content would throw all of it away, and one that finds none takes it only of a tool that failed.
 */
function remarked(result: ToolResult, unfit: PmlError): ToolResult {
  const { structuredContent, content, _meta, ...rest } = result;
  const { code, message, hint } = unfit;
  const text = `[PML: ${code}: ${message}. ${hint}. Its result follows as it came]`;
  const said = content.length > 0 || structuredContent === undefined
    ? content
    : textResult(JSON.stringify(structuredContent)).content;
  return {
    ...rest,
    content: [...textResult(text).content, ...said],
    isError: true,
    _meta: { ...objectOf(_meta), "pml/error": { code, message, hint } },
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

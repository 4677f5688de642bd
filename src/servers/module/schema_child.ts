/**
 * Checks values against schemas of other authors. The check of a pattern can take forever, so each
 * check runs in a child without grants. If it takes too long, the child is killed.
 *
 * @module
 */

import { asPmlError, PmlError } from "../../core/errors.ts";
import { type JsonObject, objectOf, visible } from "../../core/json.ts";
import { whyUnsafe } from "../../core/schema_size.ts";
import { unlessAborted } from "../../io/waiting.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import type { SchemaAnswer, SchemaCheck } from "../../sandbox/schema_module.ts";
import type { ChildStarter } from "./child_starter.ts";
import { callWithin, ClosedChild } from "./closed_child.ts";
import type { ModuleHost } from "./module_host.ts";

/** How long one check may take, in milliseconds. */
export const CHECK_MS = 2_000;
/** The maximum number of schemas that a child caches. */
const SCHEMAS_MAX = 500;

/**
 * Checks values in one child, one after the other, because a check that hangs ends its child.
 */
export class SchemaChild implements AsyncDisposable {
  readonly #child: ClosedChild;
  /** For each child, the ids of the schemas that it has cached. */
  readonly #schemas = new WeakMap<Sandbox, Map<JsonObject, number>>();

  /** Starts nothing before the first check. */
  constructor(starter: ChildStarter, host: ModuleHost) {
    const code = async () => (await import("../../sandbox/schema_module.ts")).SCHEMA_CODE;
    this.#child = new ClosedChild(starter, host, { name: "schemas", code });
  }

  /**
   * Returns why a value does not match a schema; undefined if it matches. Throws
   * `UPSTREAM_PROTOCOL` if the schema cannot be used, or if the check takes too long.
   */
  async wrong(
    schema: JsonObject,
    value: unknown,
    signal?: AbortSignal,
  ): Promise<string | undefined> {
    return (await this.#check(schema, { value }, signal)).wrong;
  }

  /** Throws `UPSTREAM_PROTOCOL` if a schema cannot be used. */
  async assertUsable(schema: JsonObject): Promise<void> {
    await this.#check(schema, {});
  }

  /** Returns whether a text matches a pattern. Returns false if the check takes too long. */
  async matches(text: string, pattern: string): Promise<boolean> {
    const matched = this.#child.enqueue((child) => call(child, "matches", { text, pattern }));
    return await matched.catch(() => false) === true;
  }

  /** Ends the child. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#child[Symbol.asyncDispose]();
  }

  async #check(
    schema: JsonObject,
    value: { readonly value?: unknown },
    signal?: AbortSignal,
  ): Promise<SchemaAnswer> {
    const checked = this.#child.enqueue(async (child) =>
      signal?.aborted ? {} : await call(child, "check", this.#requestFor(child, schema, value))
    );
    const answer = await (signal === undefined ? checked : unlessAborted(checked, signal));
    const { unusable, wrong }: SchemaAnswer = objectOf(answer);
    if (unusable !== undefined) throw unusableSchema(unusable);
    return { ...wrong !== undefined && { wrong } };
  }

  /** Returns the request for a check. A schema is sent only once to each child. */
  #requestFor(
    child: Sandbox,
    schema: JsonObject,
    value: { readonly value?: unknown },
  ): SchemaCheck {
    const schemas = this.#schemas.get(child) ?? new Map<JsonObject, number>();
    this.#schemas.set(child, schemas);
    const knownId = schemas.get(schema);
    if (knownId !== undefined) return { id: knownId, ...value };
    const unsafe = whyUnsafe(schema);
    if (unsafe !== undefined) throw unusableSchema(unsafe);
    const isReset = schemas.size >= SCHEMAS_MAX;
    if (isReset) schemas.clear();
    const id = schemas.size;
    schemas.set(schema, id);
    return { id, schema, isReset, ...value };
  }
}

async function call(child: Sandbox, fn: string, request: object): Promise<unknown> {
  try {
    return await callWithin(child, { fn, request, ms: CHECK_MS, tooSlow });
  } catch (error) {
    const { code, message } = asPmlError(error);
    throw code === "SANDBOX_CRASHED" ? unusableSchema(message) : error;
  }
}

function tooSlow(): PmlError {
  return new PmlError(
    "UPSTREAM_PROTOCOL",
    `Cannot check a value against a tool's schema: it takes over ${CHECK_MS / 1_000} seconds`,
    { hint: "The tool's author has to simplify the patterns of its schema" },
  );
}

function unusableSchema(why: string): PmlError {
  return new PmlError("UPSTREAM_PROTOCOL", `Cannot use a tool's schema: ${visible(why, 300)}`, {
    hint: "The tool's author has to correct its schema",
  });
}

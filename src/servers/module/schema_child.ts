/**
 * Checks values against schemas of other authors. A pattern can take forever, so each check runs in
 * a child without grants, which is killed when a check takes too long.
 *
 * @module
 */

import { asPmlError, PmlError } from "../../core/errors.ts";
import { type JsonObject, objectOf, visible } from "../../core/json.ts";
import { unsafeSchema } from "../../core/schema_size.ts";
import { unlessAborted } from "../../io/waiting.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import type { SchemaAnswer, SchemaCheck } from "../../sandbox/schema_module.ts";
import type { ChildStarter } from "./child_starter.ts";
import type { ModuleHost } from "./module_host.ts";

/** How long one check may take, in milliseconds. */
export const CHECK_MS = 2_000;
/** How many schemas a child keeps. */
const MOST_SCHEMAS = 500;

/** A child that is started, with the numbers of the schemas that it has. */
interface Started {
  readonly sandbox: Sandbox;
  readonly schemas: Map<JsonObject, number>;
}

/**
 * The child that checks values, one after the other: a check that hangs ends with its child, so no
 * other check may be in it.
 */
export class SchemaChild implements AsyncDisposable {
  readonly #starter: ChildStarter;
  readonly #host: ModuleHost;
  #started: Started | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #idle: ReturnType<typeof setTimeout> | undefined;

  /** Starts nothing before the first check. */
  constructor(starter: ChildStarter, host: ModuleHost) {
    this.#starter = starter;
    this.#host = host;
  }

  /**
   * Returns why a value does not match a schema; undefined if it does. Throws UPSTREAM_PROTOCOL if
   * the schema cannot be used, or if the check takes too long.
   */
  async wrong(
    schema: JsonObject,
    value: unknown,
    signal?: AbortSignal,
  ): Promise<string | undefined> {
    return (await this.#check(schema, { value }, signal)).wrong;
  }

  /** Throws UPSTREAM_PROTOCOL if a schema cannot be used. */
  async assertUsable(schema: JsonObject): Promise<void> {
    await this.#check(schema, {});
  }

  /** Returns whether a text matches a pattern; false also if that takes too long. */
  async matches(text: string, pattern: string): Promise<boolean> {
    const matched = this.#inTurn((started) => call(started, "matches", { text, pattern }));
    return await matched.catch(() => false) === true;
  }

  /** Ends the child. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#idle);
    const started = this.#started;
    this.#started = undefined;
    await started?.sandbox[Symbol.asyncDispose]();
  }

  async #check(
    schema: JsonObject,
    value: { readonly value?: unknown },
    signal?: AbortSignal,
  ): Promise<SchemaAnswer> {
    const checked = this.#inTurn(async (started) =>
      signal?.aborted ? {} : await call(started, "check", requestFor(started, schema, value))
    );
    const answer = await (signal === undefined ? checked : unlessAborted(checked, signal));
    const { unusable, wrong }: SchemaAnswer = objectOf(answer);
    if (unusable !== undefined) throw unusableSchema(unusable);
    return { ...wrong !== undefined && { wrong } };
  }

  #inTurn<T>(work: (started: Started) => Promise<T>): Promise<T> {
    const done = this.#last.then(async () => await work(await this.#start()));
    this.#last = done.catch(() => {}).then(() => this.#rest());
    return done;
  }

  async #start(): Promise<Started> {
    clearTimeout(this.#idle);
    if (this.#started?.sandbox.alive) return this.#started;
    await this.#started?.sandbox[Symbol.asyncDispose]();
    const { SCHEMA_CODE } = await import("../../sandbox/schema_module.ts");
    const module = { name: "schemas", code: new TextEncoder().encode(SCHEMA_CODE) };
    // It takes no place: a call that waits for a place waits for it.
    const sandbox = await this.#starter.openClosed(module, new DisposableStack());
    return this.#started = { sandbox, schemas: new Map() };
  }

  #rest(): void {
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => void this[Symbol.asyncDispose](), this.#host.limits.idleMs);
    Deno.unrefTimer(Number(this.#idle));
  }
}

/** Returns the request of a check. A schema is sent once. */
function requestFor(
  { schemas }: Started,
  schema: JsonObject,
  value: { readonly value?: unknown },
): SchemaCheck {
  const knownId = schemas.get(schema);
  if (knownId !== undefined) return { id: knownId, ...value };
  const unsafe = unsafeSchema(schema);
  if (unsafe !== undefined) throw unusableSchema(unsafe);
  const isReset = schemas.size >= MOST_SCHEMAS;
  if (isReset) schemas.clear();
  const id = schemas.size;
  schemas.set(schema, id);
  return { id, schema, isReset, ...value };
}

async function call({ sandbox }: Started, fn: string, request: object): Promise<unknown> {
  const timeout = new AbortController();
  const timer = setTimeout(() => timeout.abort(tooSlow()), CHECK_MS);
  try {
    const args = request as JsonObject; // plain JSON
    return await sandbox.call({ fn, arguments: args, signal: timeout.signal, graceMs: 0 });
  } catch (error) {
    const { code, message } = asPmlError(error);
    throw code === "SANDBOX_CRASHED" ? unusableSchema(message) : error;
  } finally {
    clearTimeout(timer);
    // The next check must not get a child that is about to be killed.
    if (timeout.signal.aborted) await sandbox[Symbol.asyncDispose]();
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

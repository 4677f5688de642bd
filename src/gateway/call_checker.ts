/**
 * Checks the calls of a plan or a batch before they run: finds their errors, and asks the user once
 * about all calls. Each call still passes all checks when it runs.
 *
 * @module
 */

import { type ApprovalAnswer, type Call, changeCall, type Question } from "../protocol/call.ts";
import type { PmlError } from "../core/errors.ts";
import type { CallContext } from "../calls/context.ts";
import { wrongNames } from "../core/argument_names.ts";
import { type JsonObject, objectOf, withoutUndefined } from "../core/json.ts";
import type { ResolvedCall } from "../servers/server.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { badArgumentsError, type Schemas } from "../calls/schemas.ts";
import { askForAll, type CallPreflight } from "../calls/ask_all.ts";
import type { ApprovalHost } from "../calls/decisions.ts";
import type { Preflight } from "../workflow/plans.ts";

/** The part of the call path that checks need. `CallPath` implements it. */
export interface PreflightPath {
  readonly schemas: Schemas;
  /** Resolves a call. Throws if a rule denies it. */
  preflight(call: Call): Promise<CallContext>;
  /** Leaves an approval request for `pml approve`, and returns the error that names it. */
  storeQuestion(question: Question): Promise<PmlError>;
}

/** Checks calls before they run. */
export class CallChecker implements Preflight, CallPreflight {
  readonly #path: PreflightPath;
  readonly #approvals: ApprovalHost;

  /** Takes the call path and its approvals. Checks nothing yet. */
  constructor(path: PreflightPath, approvals: ApprovalHost) {
    this.#path = path;
    this.#approvals = approvals;
  }

  /** Asks once for several calls. Returns the answer for each, by its `callId`. */
  async askForAll(calls: readonly Call[]): Promise<ReadonlyMap<string, ApprovalAnswer>> {
    return await askForAll(calls, this.#approvals, this);
  }

  /** Resolves a call. Throws if a rule denies it. */
  preflight(call: Call): Promise<CallContext> {
    return this.#path.preflight(call);
  }

  /** Asks the client of the first call. */
  async ask(
    question: Question,
    { client: { onQuestion }, cancellation }: Call,
  ): Promise<ApprovalAnswer | undefined> {
    if (onQuestion === undefined) throw await this.#path.storeQuestion(question);
    return await onQuestion(question, cancellation.signal);
  }

  /**
   * Throws the error of a call that would fail. `open` names the arguments whose values are
   * unknown. Returns false if the call cannot be checked now, because its server is not approved or
   * the configuration has changed.
   */
  async check(call: Call, open: ReadonlySet<string> = new Set()): Promise<boolean> {
    if (open.size > 0) return await this.#checkOpen(call, open);
    const resolved = await this.preflight(call);
    if (await resolved.server.findUnapproved(resolved) !== undefined) return false;
    // If the configuration has changed, the call is checked again before PML asks the user, and when
    // it runs.
    if (!resolved.isCurrent()) return false;
    await this.assertFits(resolved);
    return true;
  }

  /**
   * Checks a call with open arguments, which get random values for this. Refuses the call only if
   * the rules deny both a value without a slash and a value with slashes: `*` in a rule matches no
   * slash.
   */
  async #checkOpen(call: Call, open: ReadonlySet<string>): Promise<boolean> {
    const argumentsWith = (value: string): JsonObject => ({
      ...call.arguments,
      ...Object.fromEntries([...open].map((name) => [name, value])),
    });
    const randomText = crypto.randomUUID();
    const preflights = await Promise.allSettled(
      [randomText, `${randomText}/${randomText}/${randomText}`].map((value) =>
        this.preflight(changeCall(call, { arguments: argumentsWith(value) }))
      ),
    );
    const [allowed] = preflights.filter(({ status }) => status === "fulfilled");
    if (allowed?.status !== "fulfilled") {
      throw preflights.find((one) => one.status === "rejected")?.reason;
    }
    const { value: resolved } = allowed;
    // The verdict is about placeholder values, so it must not allow the first use of a server.
    resolved.verdict = undefined;
    const { server } = resolved;
    const unapproved = await server.findUnapproved(resolved);
    if (unapproved !== undefined || !resolved.isCurrent()) return false;
    const { inputSchema, ...definition } = await resolved.definition();
    assertNames(resolved, { ...definition, inputSchema });
    const openDefinition = { ...definition, inputSchema: openSchema(inputSchema, open) };
    await this.#path.schemas.checkArguments(resolved, { definition: openDefinition, server });
    return true;
  }

  /** Throws if the arguments of a call do not fit its tool. */
  async assertFits(call: ResolvedCall): Promise<void> {
    const { server } = call;
    const definition = await call.definition();
    assertNames(call, definition);
    await this.#path.schemas.checkArguments(call, { definition, server });
  }
}

/**
 * Throws BAD_ARGUMENTS for a missing or an unknown argument, so that no other call of a plan or a
 * batch runs before the server refuses this one.
 */
function assertNames(
  { id, arguments: args }: Pick<Call, "id" | "arguments">,
  definition: ToolDefinition,
): void {
  const why = wrongNames(definition.inputSchema, args);
  if (why !== undefined) throw badArgumentsError(id, definition, why);
}

/** Returns a schema in which the open arguments may have any value. */
function openSchema(schema: JsonObject, open: ReadonlySet<string>): JsonObject {
  const { $schema, $defs, definitions, type, properties, required } = schema;
  // All other keywords are left out, because they may restrict the open arguments.
  const isClosed = schema.additionalProperties === false && schema.patternProperties === undefined;
  return {
    ...withoutUndefined({ $schema, $defs, definitions, type, required }),
    properties: Object.fromEntries(
      Object.entries(objectOf(properties)).map(([name, one]) => [name, open.has(name) ? {} : one]),
    ),
    ...(isClosed && { additionalProperties: false }),
  };
}

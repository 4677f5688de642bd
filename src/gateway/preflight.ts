/**
 * Checks calls before they run: finds their errors, and asks the user once about all of them. This
 * allows nothing by itself: each call passes all checks again when it runs.
 *
 * @module
 */

import { type ApprovalAnswer, type Call, changedCall, type Question } from "../protocol/call.ts";
import type { PmlError } from "../core/errors.ts";
import type { CallContext } from "../calls/context.ts";
import { wrongNames } from "../core/argument_names.ts";
import { defined, type JsonObject, objectOf } from "../core/json.ts";
import type { ResolvedCall } from "../servers/server.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { badArguments, type Schemas } from "../calls/schemas.ts";
import { askForAll, type CallLooker } from "../calls/ask_all.ts";
import type { ApprovalHost } from "../calls/decisions.ts";
import type { Preflight } from "../workflow/plans.ts";

/** The call path that the calls will take. `CallPath` implements it. */
export interface PreflightPath {
  readonly schemas: Schemas;
  /** Resolves a call. Throws if a rule denies it. */
  preflight(call: Call): Promise<CallContext>;
  /** Leaves an approval request for `pml approve`, and returns the error that names it. */
  leave(question: Question): Promise<PmlError>;
}

/** Checks calls before they run. */
export class Ahead implements Preflight, CallLooker {
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
  look(call: Call): Promise<CallContext> {
    return this.#path.preflight(call);
  }

  /** Asks the client of the first call. */
  async ask(
    question: Question,
    { client: { onQuestion }, cancellation }: Call,
  ): Promise<ApprovalAnswer | undefined> {
    if (onQuestion === undefined) throw await this.#path.leave(question);
    return await onQuestion(question, cancellation.signal);
  }

  /**
   * Throws the error of a call that would fail. `open` names the arguments whose values are
   * unknown. Returns whether the tool could be checked: the server must be approved.
   */
  async check(call: Call, open: ReadonlySet<string> = new Set()): Promise<boolean> {
    if (open.size > 0) return await this.#checkOpen(call, open);
    const looked = await this.look(call);
    if (await looked.server.unapproved(looked) !== undefined) return false;
    // A change during this check is checked again before the user is asked, and when the call runs.
    if (!looked.isCurrent()) return false;
    await this.assertFits(looked);
    return true;
  }

  /**
   * Checks a call with open arguments: it is refused if the rules deny it for any values. One value
   * has a slash, which no `*` of a rule matches.
   */
  async #checkOpen(call: Call, open: ReadonlySet<string>): Promise<boolean> {
    const withValues = (value: string): JsonObject => ({
      ...call.arguments,
      ...Object.fromEntries([...open].map((name) => [name, value])),
    });
    const name = crypto.randomUUID();
    const denied = await Promise.allSettled(
      [name, `${name}/${name}/${name}`].map((value) =>
        this.look(changedCall(call, { arguments: withValues(value) }))
      ),
    );
    const [first] = denied.filter(({ status }) => status === "fulfilled");
    if (first?.status !== "fulfilled") {
      throw denied.find((one) => one.status === "rejected")?.reason;
    }
    const { value: looked } = first;
    // No rule can allow a first use by placeholder values.
    looked.verdict = undefined;
    const { server } = looked;
    const unapproved = await server.unapproved(looked);
    if (unapproved !== undefined || !looked.isCurrent()) return false;
    const { inputSchema, ...definition } = await looked.definition();
    assertNames(looked, { ...definition, inputSchema });
    const openDefinition = { ...definition, inputSchema: openSchema(inputSchema, open) };
    await this.#path.schemas.checkArguments(looked, { definition: openDefinition, server });
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
  if (why !== undefined) throw badArguments(id, definition, why);
}

/** Returns a schema in which the open arguments may have any value. */
function openSchema(schema: JsonObject, open: ReadonlySet<string>): JsonObject {
  const { $schema, $defs, definitions, type, properties, required } = schema;
  // Other keywords may restrict the open arguments.
  const isClosed = schema.additionalProperties === false && schema.patternProperties === undefined;
  return {
    ...defined({ $schema, $defs, definitions, type, required }),
    properties: Object.fromEntries(
      Object.entries(objectOf(properties)).map(([name, one]) => [name, open.has(name) ? {} : one]),
    ),
    ...(isClosed && { additionalProperties: false }),
  };
}

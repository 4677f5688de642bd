/**
 * A run: a plan, code or a capability that calls several tools. Each call passes all checks. While
 * the user is asked, the run waits. It is not started again, so no part of it runs twice.
 *
 * @module
 */

import {
  type ApprovalAnswer,
  type Call,
  type CallClient,
  type CallTool,
  changeCall,
  changeClient,
  type Question,
  type ToolResult,
} from "../protocol/call.ts";
import { Cancellation } from "../core/cancellation.ts";
import { mayHaveRun, NOTHING_RAN, PmlError, SAME_CALL_AGAIN } from "../core/errors.ts";
import type { JsonObject } from "../core/json.ts";
import { joinSentences } from "../core/sentences.ts";
import type { ToolId } from "../core/tool_id.ts";

/** The options of a run. */
export interface RunOptions {
  /** The id that the journal records with all calls of the run. */
  readonly id: string;
  /** The origin of its calls. */
  readonly via: "plan" | "code" | "capability" | "sampling";
  readonly actor: string;
  /** The number of capabilities that wait for this run. */
  readonly depth: number;
  /** The maximum number of calls of the run. */
  readonly maxCalls: number;
  readonly callTool: CallTool;
  readonly signal: AbortSignal;
  /** The client that waits for the run. */
  readonly client: CallClient;
}

/** One call of a run. */
export interface RunCall {
  readonly id: ToolId;
  readonly arguments: JsonObject;
  /** The answer to an approval request from before the run. */
  readonly answer?: ApprovalAnswer | undefined;
  /** Ends only this call. */
  readonly signal?: AbortSignal;
  readonly onProgress?: CallClient["onProgress"];
}

/**
 * The maximum number of approval requests of one call. A call can require several: first for its
 * server, then for the tool, and again if a rule or a definition changes meanwhile.
 */
const QUESTIONS_MAX = 4;

/** Makes the calls of one plan, code or capability. */
export class Run {
  /** The options of the run. */
  readonly options: RunOptions;
  readonly #tools = new Set<ToolId>();
  #calls = 0;
  #refusedCalls = 0;

  /** Creates a run. Calls nothing. */
  constructor(options: RunOptions) {
    this.options = options;
  }

  /** The number of calls so far. */
  get callCount(): number {
    return this.#calls;
  }

  /** The tools that returned a result. */
  get tools(): readonly ToolId[] {
    return [...this.#tools];
  }

  /** Calls a tool. If the user must approve the call, asks and waits for the answer. */
  async call(request: RunCall): Promise<ToolResult> {
    try {
      return await this.#makeCall(request);
    } catch (error) {
      throw error instanceof PmlError ? this.#withRunHint(error) : error;
    }
  }

  /**
   * Returns the error of a call with a hint for the whole run: a model that repeats the code also
   * repeats the other calls of the code.
   */
  #withRunHint(error: PmlError): PmlError {
    const isUncertain = mayHaveRun(error);
    if (!isUncertain) this.#refusedCalls++;
    const otherCalls = this.#calls - this.#refusedCalls - (isUncertain ? 1 : 0);
    const { code, message, detail, hint = "" } = error;
    const texts = hintTexts(this.options);
    const again = otherCalls > 0 ? texts.againAfterCalls : texts.again;
    const ownHint = hint.replace(NOTHING_RAN, "This call was not run")
      .replace(SAME_CALL_AGAIN, again);
    const warning = otherCalls > 0 && texts.repeats !== undefined
      ? `${texts.repeats} again repeats its other calls (${otherCalls})`
      : "";
    const runHint = joinSentences([ownHint, warning]);
    if (runHint === hint) return error;
    return new PmlError(code, message, {
      hint: runHint,
      cause: error,
      ...detail !== undefined && { detail },
    });
  }

  async #makeCall({ answer, ...request }: RunCall): Promise<ToolResult> {
    const { callTool, maxCalls: calls, depth, id: run, client, ...options } = this.options;
    // guard: code-calls
    if (++this.#calls > calls) throw tooManyCalls(calls);
    const signal = request.signal === undefined
      ? options.signal
      : AbortSignal.any([options.signal, request.signal]);
    using cancellation = Cancellation.of(signal);
    const { id, arguments: args, ...changes } = request;
    const { via, actor } = options;
    const call: Call = {
      id,
      arguments: args,
      via,
      actor,
      run,
      depth,
      cancellation,
      client: "onProgress" in changes
        ? changeClient(client, { onProgress: changes.onProgress })
        : client,
      // The capability already occupies a slot, and its calls must not wait for another one.
      isNested: depth > 0,
      callId: crypto.randomUUID(),
    };
    const result = await callWithApproval(call, { callTool }, answer);
    this.#tools.add(request.id);
    return result;
  }
}

/** The texts of hints that depend on what made the call. */
interface HintTexts {
  /** The step after the user's approval, if no other call of the run can have run. */
  readonly again: string;
  /** The step after the user's approval, if other calls of the run can have run. */
  readonly againAfterCalls: string;
  /** What repeats the other calls; undefined if nothing does. */
  readonly repeats?: string;
}

function hintTexts({ via, depth, id }: Pick<RunOptions, "via" | "depth" | "id">): HintTexts {
  if (via === "sampling") return { again: SAME_CALL_AGAIN, againAfterCalls: SAME_CALL_AGAIN };
  if (via === "capability" || depth > 0) {
    return {
      again: "call the capability again",
      againAfterCalls: SAME_CALL_AGAIN,
      repeats: "Calling the capability",
    };
  }
  if (via === "code") {
    return {
      again: "run the code again",
      againAfterCalls: `${SAME_CALL_AGAIN}, without the calls before it`,
      repeats: "Running the code",
    };
  }
  const resume = `run execute_workflow {"resume":"${id}"}`;
  return { again: resume, againAfterCalls: resume };
}

/** Makes calls, and can store approval requests for later. `CallPath` implements it. */
export interface AskingPath {
  readonly callTool: CallTool;
  /** Stores an approval request for later, and returns the error for the caller. */
  storeQuestion?(question: Question): Promise<PmlError>;
}

/**
 * Makes a call and asks the user if approval is required. Throws APPROVAL_REQUIRED if the call
 * requires approval too often, or if no user can be asked.
 */
export async function callWithApproval(
  call: Call,
  path: AskingPath,
  approvalAnswer?: ApprovalAnswer,
): Promise<ToolResult> {
  const { id, client: { onQuestion }, cancellation: { signal } } = call;
  let [answer, { callId }] = [approvalAnswer, call];
  for (let count = 0; count < QUESTIONS_MAX; count++) {
    const outcome = await path.callTool(changeCall(call, { callId, answer }));
    if (outcome.kind === "result") return outcome.result;
    const { question } = outcome;
    if (onQuestion === undefined && path.storeQuestion !== undefined) {
      throw await path.storeQuestion(question);
    }
    if (onQuestion === undefined) break;
    answer = await onQuestion(question, signal);
    callId = crypto.randomUUID();
  }
  throw new PmlError("APPROVAL_REQUIRED", `Cannot run "${id}": it requires approval by the user`, {
    hint: "Call the tool alone, so that the user can be asked",
  });
}

/** Returns the error of a plan with too many tasks. */
export function tooManyTasksError(count: number, most: number): PmlError {
  return new PmlError("BAD_ARGUMENTS", `Cannot run ${count} tasks: limits.plan_tasks is ${most}`, {
    hint: "Do the work in several plans",
  });
}

function tooManyCalls(calls: number): PmlError {
  return new PmlError("OVERLOADED", `Cannot make more calls in this run: it has made ${calls}`, {
    hint: "Do the work in several runs, or raise limits.code_calls in config.yaml",
  });
}

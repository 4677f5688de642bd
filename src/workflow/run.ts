/**
 * A run: a plan, code or a capability that calls several tools. Each call goes through all gates.
 * A question to the person is asked while the run waits, so nothing of the run is done twice.
 *
 * @module
 */

import {
  type Answer,
  type Call,
  type CallClient,
  type CallTool,
  changedCall,
  changedClient,
  type Question,
  type ToolResult,
} from "../protocol/call.ts";
import { Cancellation } from "../core/cancellation.ts";
import { PmlError } from "../core/errors.ts";
import type { JsonObject } from "../core/json.ts";
import type { ToolId } from "../core/tool_id.ts";

/** The options of a run. */
export interface RunOptions {
  /** Connects the records of all its calls in the journal. */
  readonly id: string;
  /** The origin that its calls have. */
  readonly via: "plan" | "code" | "capability" | "sampling";
  readonly actor: string;
  /** How many capabilities wait for this run. */
  readonly depth: number;
  /** How many calls it may make. */
  readonly calls: number;
  readonly callTool: CallTool;
  readonly signal: AbortSignal;
  /** The client that waits for the run. */
  readonly client: CallClient;
}

/** One call of a run. */
export interface RunCall {
  readonly id: ToolId;
  readonly arguments: JsonObject;
  /** The answer of a question that was asked before the run began. */
  readonly answer?: Answer | undefined;
  /** Ends this call alone. */
  readonly signal?: AbortSignal;
  readonly onProgress?: CallClient["onProgress"];
}

/**
 * One call has one question, or more if its server must be looked up and trusted first, or if
 * something changes meanwhile.
 */
const MOST_QUESTIONS = 4;

/** Makes the calls of one plan, one piece of code or one capability. */
export class Run {
  /** What it was begun with. */
  readonly options: RunOptions;
  readonly #tools = new Set<ToolId>();
  #calls = 0;

  /** Takes the options; calls nothing. */
  constructor(options: RunOptions) {
    this.options = options;
  }

  /** How many calls it has made. */
  get calls(): number {
    return this.#calls;
  }

  /** The tools that it called, and that gave a result. */
  get tools(): readonly ToolId[] {
    return [...this.#tools];
  }

  /** Calls a tool. If the person must be asked, asks and waits for the answer. */
  async call({ answer, ...asked }: RunCall): Promise<ToolResult> {
    const { callTool, calls, depth, id: run, client, ...options } = this.options;
    // guard: code-calls
    if (++this.#calls > calls) throw tooMany(calls);
    const signal = asked.signal === undefined
      ? options.signal
      : AbortSignal.any([options.signal, asked.signal]);
    using cancellation = Cancellation.of(signal);
    const { id, arguments: args, ...changes } = asked;
    const { via, actor } = options;
    const call: Call = {
      ...{ id, arguments: args, via, actor, run, depth, cancellation },
      client: "onProgress" in changes
        ? changedClient(client, { onProgress: changes.onProgress })
        : client,
      // A capability has its place already, and its calls must not wait for another one.
      isNested: depth > 0,
      callId: crypto.randomUUID(),
    };
    const result = await answeredResult(call, { callTool, answer });
    this.#tools.add(asked.id);
    return result;
  }
}

/**
 * Makes a call, and asks what it is asked about meanwhile. Throws APPROVAL_REQUIRED for one that
 * asks again and again, or has nobody to ask.
 */
export async function answeredResult(
  call: Call,
  { callTool, answer: given, leave }: {
    readonly callTool: CallTool;
    readonly answer?: Answer | undefined;
    /** Leaves a question that nobody can be asked, and gives the error that says so. */
    readonly leave?: (question: Question) => Promise<PmlError>;
  },
): Promise<ToolResult> {
  const { id, client: { onQuestion }, cancellation: { signal } } = call;
  let [answer, { callId }] = [given, call];
  for (let count = 0; count < MOST_QUESTIONS; count++) {
    const outcome = await callTool(changedCall(call, { callId, answer }));
    if (outcome.kind === "result") return outcome.result;
    const { question } = outcome;
    if (onQuestion === undefined && leave !== undefined) throw await leave(question);
    if (onQuestion === undefined) break;
    answer = await onQuestion(question, signal);
    callId = crypto.randomUUID();
  }
  throw new PmlError("APPROVAL_REQUIRED", `Cannot run "${id}": the person must be asked first`, {
    hint: "Call it alone, so that the question can be answered",
  });
}

/** Makes the error of a plan with too many tasks. */
export function tooManyTasks(count: number, most: number): PmlError {
  return new PmlError("BAD_ARGUMENTS", `Cannot run ${count} tasks: limits.plan_tasks is ${most}`, {
    hint: "Do the work in several plans",
  });
}

function tooMany(calls: number): PmlError {
  return new PmlError("OVERLOADED", `Cannot make more calls in one run: it has made ${calls}`, {
    hint: "Do the work in several runs, or raise limits.code_calls in config.yaml",
  });
}

/**
 * Selects parts of results with JMESPath, in children without grants. If an expression takes too
 * long or too much memory, or is cancelled, its child is killed.
 *
 * @module
 */

import { asPmlError, PmlError } from "../../core/errors.ts";
import { type Json, objectOf, quoted, textOf, visible } from "../../core/json.ts";
import { unlessAborted } from "../../io/waiting.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import type { Selecting } from "../../sandbox/select_module.ts";
import type { ChildStarter } from "./child_starter.ts";
import { callWithin, ClosedChild } from "./closed_child.ts";
import type { ModuleHost } from "./module_host.ts";

/** How long one selection may take, in milliseconds. */
export const SELECT_MS = 5_000;
/** The maximum length of an expression, in characters. */
export const EXPRESSION_MAX = 2_000;
/**
 * The maximum number of selections that run or wait. It limits memory: each one has a whole result.
 */
const WAITING_MAX = 16;
/**
 * The maximum number of children. There are several, so that a slow selection delays few others.
 */
const CHILDREN_MAX = 4;

/** Selects parts of results. */
export interface Selector {
  /** Throws `BAD_ARGUMENTS` if an expression is not valid. */
  assertValid(expression: string, signal: AbortSignal): Promise<void>;
  /** Returns the selected part of a value; null if nothing matches. Throws `BAD_ARGUMENTS`. */
  select(value: Json, expression: string, signal: AbortSignal): Promise<Json>;
}

/** A child, and the number of selections that run or wait in it. */
interface BusyChild {
  readonly child: ClosedChild;
  selections: number;
}

/** Selects in several children. Each child runs one selection at a time. */
export class SelectChildren implements Selector, AsyncDisposable {
  readonly #starter: ChildStarter;
  readonly #host: ModuleHost;
  readonly #children: BusyChild[] = [];
  #waiting = 0;

  /** Starts nothing before the first selection. */
  constructor(starter: ChildStarter, host: ModuleHost) {
    this.#starter = starter;
    this.#host = host;
  }

  /** Throws BAD_ARGUMENTS if an expression is not valid. */
  async assertValid(expression: string, signal: AbortSignal): Promise<void> {
    if (expression.length > EXPRESSION_MAX) {
      throw expressionError(expression, `it has more than ${EXPRESSION_MAX} characters`);
    }
    await this.#call("parse", { expression }, signal);
  }

  /** Returns the part of a value; null if nothing matches. Throws BAD_ARGUMENTS. */
  async select(value: Json, expression: string, signal: AbortSignal): Promise<Json> {
    await this.assertValid(expression, signal);
    return await this.#call("select", { expression, value }, signal);
  }

  /** Ends the children. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#children.map(({ child }) => child[Symbol.asyncDispose]()));
  }

  async #call(fn: "parse" | "select", request: Selecting, signal: AbortSignal): Promise<Json> {
    const { expression } = request;
    if (this.#waiting >= WAITING_MAX) throw tooManyError();
    const busy = this.#leastBusy();
    this.#waiting++;
    busy.selections++;
    const work = async (child: Sandbox) => {
      signal.throwIfAborted();
      const tooSlow = () => limitError(expression, `it takes over ${SELECT_MS / 1_000} seconds`);
      // guard: select-child
      return await callWithin(child, { fn, request, ms: SELECT_MS, tooSlow, signal });
    };
    const calling = busy.child.enqueue(work).finally(() => {
      this.#waiting--;
      busy.selections--;
    });
    try {
      const { wrong, value = null } = objectOf(await unlessAborted(calling, signal));
      if (wrong !== undefined) throw expressionError(expression, textOf(wrong));
      return value;
    } catch (error) {
      const { code, message } = asPmlError(error);
      const isLimit = ["SANDBOX_CRASHED", "RESULT_TOO_LARGE", "OUTPUT_INVALID"].includes(code);
      throw isLimit ? limitError(expression, message) : error;
    }
  }

  /**
   * Returns an idle child; otherwise a new one, or the least busy one if the maximum is reached.
   */
  #leastBusy(): BusyChild {
    const idle = this.#children.find(({ selections }) => selections === 0);
    if (idle !== undefined) return idle;
    if (this.#children.length === CHILDREN_MAX) {
      return this.#children.reduce((one, other) => other.selections < one.selections ? other : one);
    }
    const code = async () => (await import("../../sandbox/select_module.ts")).SELECT_CODE;
    const child = new ClosedChild(this.#starter, this.#host, { name: "select", code });
    const busy = { child, selections: 0 };
    this.#children.push(busy);
    return busy;
  }
}

function expressionError(expression: string, why: string): PmlError {
  return new PmlError(
    "BAD_ARGUMENTS",
    `Cannot use ${quoted(expression, 200)} as \`select\`: ${visible(why, 300)}`,
    {
      hint:
        'Send a JSON pointer, such as "/items/0", or a JMESPath expression, such as "items[].name"',
    },
  );
}

function limitError(expression: string, why: string): PmlError {
  return new PmlError(
    "BAD_ARGUMENTS",
    `Cannot select ${quoted(expression, 200)}: ${visible(why, 300)}`,
    { hint: "Select less: a simpler expression, or a JSON pointer" },
  );
}

function tooManyError(): PmlError {
  return new PmlError("OVERLOADED", "Cannot select: too many selections wait", {
    hint: "Try again in a moment",
  });
}

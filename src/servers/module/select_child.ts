/**
 * Selects parts of results with JMESPath, in a child without grants, which is killed if an
 * expression takes too long or too much memory.
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
/** How many selections may wait for the child. Each keeps a result in memory. */
const WAITING_MAX = 16;

/** Selects parts of results. */
export interface Selector {
  /** Throws BAD_ARGUMENTS if an expression is not valid. */
  assertValid(expression: string, signal: AbortSignal): Promise<void>;
  /** Returns the part of a value; null if nothing matches. Throws BAD_ARGUMENTS. */
  select(value: Json, expression: string, signal: AbortSignal): Promise<Json>;
}

/** The child that selects, one selection after the other. */
export class SelectChild implements Selector, AsyncDisposable {
  readonly #child: ClosedChild;
  #waiting = 0;

  /** Starts nothing before the first selection. */
  constructor(starter: ChildStarter, host: ModuleHost) {
    const code = async () => (await import("../../sandbox/select_module.ts")).SELECT_CODE;
    this.#child = new ClosedChild(starter, host, { name: "select", code });
  }

  /** Throws BAD_ARGUMENTS if an expression is not valid. */
  async assertValid(expression: string, signal: AbortSignal): Promise<void> {
    if (expression.length > EXPRESSION_MAX) {
      throw wrongExpression(expression, `it has more than ${EXPRESSION_MAX} characters`);
    }
    await this.#call("parse", { expression }, signal);
  }

  /** Returns the part of a value; null if nothing matches. Throws BAD_ARGUMENTS. */
  async select(value: Json, expression: string, signal: AbortSignal): Promise<Json> {
    await this.assertValid(expression, signal);
    return await this.#call("select", { expression, value }, signal);
  }

  /** Ends the child. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#child[Symbol.asyncDispose]();
  }

  async #call(fn: "parse" | "select", request: Selecting, signal: AbortSignal): Promise<Json> {
    const { expression } = request;
    if (this.#waiting >= WAITING_MAX) throw tooMany();
    this.#waiting++;
    const work = async (child: Sandbox) => {
      signal.throwIfAborted();
      const tooSlow = () => overLimit(expression, `it takes over ${SELECT_MS / 1_000} seconds`);
      // guard: select-child
      return await callWithin(child, { fn, request, ms: SELECT_MS, tooSlow });
    };
    const calling = this.#child.inTurn(work).finally(() => this.#waiting--);
    try {
      const { wrong, value = null } = objectOf(await unlessAborted(calling, signal));
      if (wrong !== undefined) throw wrongExpression(expression, textOf(wrong));
      return value;
    } catch (error) {
      const { code, message } = asPmlError(error);
      const isLimit = ["SANDBOX_CRASHED", "RESULT_TOO_LARGE", "OUTPUT_INVALID"].includes(code);
      throw isLimit ? overLimit(expression, message) : error;
    }
  }
}

function wrongExpression(expression: string, why: string): PmlError {
  return new PmlError(
    "BAD_ARGUMENTS",
    `Cannot use ${quoted(expression, 200)} as \`select\`: ${visible(why, 300)}`,
    {
      hint:
        'Send a JSON pointer, such as "/items/0", or a JMESPath expression, such as "items[].name"',
    },
  );
}

function overLimit(expression: string, why: string): PmlError {
  return new PmlError(
    "BAD_ARGUMENTS",
    `Cannot select ${quoted(expression, 200)}: ${visible(why, 300)}`,
    { hint: "Select less: a simpler expression, or a JSON pointer" },
  );
}

function tooMany(): PmlError {
  return new PmlError("OVERLOADED", "Cannot select: too many selections wait", {
    hint: "Try again in a moment",
  });
}

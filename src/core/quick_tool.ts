/**
 * Calls of a tool that run at once: everything that their way asks was found out by a call before,
 * and nothing of it has changed since.
 *
 * @module
 */

import type { Meanwhile, Outcome } from "./call.ts";
import type { JsonObject } from "./json.ts";
import type { ToolDefinition } from "./tool.ts";

/** Cancels a call. The reason is the error of the call. */
export type Cancel = (reason: unknown) => void;

/** Receives the end of a call: one of its functions is called once. */
export interface Back {
  answered(outcome: Outcome): void;
  failed(error: unknown): void;
  /** Takes the call back: it did not reach its server. */
  unsent(error: unknown): void;
  /** Returns the ways back to the client. They are made when the server wants one. */
  ways(): Meanwhile & { readonly signal: AbortSignal };
}

/** A tool of a server that runs. */
export interface QuickTool {
  /** Returns whether its server can still be called without a question to anybody. */
  holds(): boolean;
  /** The instructions of its server, which must be approved, too; undefined if there are none. */
  readonly instructions?: ToolDefinition | undefined;
  /** Calls the tool. */
  call(args: JsonObject, back: Back): Cancel;
}

/** Returns the tool with this definition; undefined if its calls have to ask something first. */
export type FindQuickTool = (definition: ToolDefinition) => QuickTool | undefined;

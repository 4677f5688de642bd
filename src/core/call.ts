/**
 * A call, what comes of it, and the shape of everything that wraps one.
 *
 * @module
 */

import type { ErrorCode } from "./errors.ts";
import type { JsonObject } from "./json.ts";
import type { ToolId } from "./tool_id.ts";

/** One block of a result, as MCP has it: `{type: "text", text}` and others. */
export interface ContentBlock {
  /** What kind of block it is: `text`, `image`, `audio`, `resource`, `resource_link`. */
  readonly type: string;
  /** What a block of its kind holds. */
  readonly [key: string]: unknown;
}

/** What a tool gives back, as MCP has it. Unknown fields are kept. */
export interface ToolResult {
  /** What a model reads. */
  readonly content: readonly ContentBlock[];
  /** The same as JSON, where the tool gives any. */
  readonly structuredContent?: unknown;
  /** Whether the tool failed, and the content says how. */
  readonly isError?: boolean;
  /** Whatever else the tool said. */
  readonly [key: string]: unknown;
}

/** How far a call has come. */
export interface Progress {
  /** How much is done, in any unit; it only grows. */
  readonly progress: number;
  /** How much there is to do, where that is known. */
  readonly total?: number;
  /** What is being done. */
  readonly message?: string;
}

/** What the person answered to a question, with the handle that the question carried. */
export interface Answer {
  /** The handle of the question. */
  readonly handle: string;
  /** What the person said. */
  readonly reply: Reply;
}

/** The three answers, and the two ways of giving none. */
export type Reply = "Yes" | "Always" | "No" | "cancelled";

/** What the rules say of a call, and which rule said it. */
export interface Verdict {
  /** Whether the call runs, is asked about, or is refused. */
  readonly kind: "allow" | "ask" | "deny";
  /** The pattern that decided, as the person wrote it, or words such as "no rule". */
  readonly rule: string;
  /** Where that rule stands: a file, or "defaults". */
  readonly source: string;
  /** Where no arguments were told: the first few rules of the tool that look at them. */
  readonly depends?: readonly string[];
}

/** A request to run one tool, on its way through the gates. */
export interface Call {
  readonly id: ToolId;
  readonly arguments: JsonObject;
  /** The way it came: `tools/call`, `call`, `batch`, `cli`, `library`. */
  readonly via: string;
  /** Whose call it is; `local` where there is one person. */
  readonly actor: string;
  readonly signal: AbortSignal;
  /** Ties the records and frames of one call together; unique in this process. */
  readonly callId: string;
  readonly answer?: Answer;
  readonly verdict?: Verdict;
  readonly onProgress?: (progress: Progress) => void;
}

/** A question to the person: PML's own text, and the handle that its answer must carry. */
export interface Question {
  readonly handle: string;
  readonly text: string;
  /** Whether "Always" can be offered. */
  readonly always: boolean;
  /** Whether it is too long for a client's form, so that only a terminal can show it in full. */
  readonly terminalOnly: boolean;
  /** What the call fails with where nobody can be asked; APPROVAL_REQUIRED unless said. */
  readonly otherwise?: ErrorCode;
}

/** What comes of a call: its result, or a question to the person. Failures are thrown. */
export type Outcome =
  | { readonly kind: "result"; readonly result: ToolResult }
  | { readonly kind: "ask"; readonly question: Question };

/** Runs a call. */
export type CallTool = (call: Call) => Promise<Outcome>;

/** Wraps a call with one concern. */
export type Gate = (next: CallTool) => CallTool;

/** Puts gates around a call, the first one outermost. */
export function through(gates: readonly Gate[], inner: CallTool): CallTool {
  return gates.reduceRight((next, gate) => gate(next), inner);
}

/** A result of one text block. */
export function textResult(text: string): ToolResult {
  return { content: [{ type: "text", text }] };
}

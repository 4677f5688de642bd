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
  /** The variable that changes how programs run and that no rule names, where that refuses it. */
  readonly steering?: string;
}

/** What a server asks of the client while it works on a call. */
export interface ServerRequest {
  /** The name of the server. */
  readonly server: string;
  readonly method: "elicitation/create" | "sampling/createMessage";
  readonly params: JsonObject;
  /** Aborts when the server takes it back, or what it belongs to is over. */
  readonly signal: AbortSignal;
}

/** What is told and asked of who made a request, while its server works on it. */
export interface Meanwhile {
  /** The id of the client's request, as JSON; several calls may serve one. */
  readonly request?: string | undefined;
  readonly onProgress?: ((progress: Progress) => void) | undefined;
  /** Takes what the server logs about it: the params of `notifications/message`. */
  readonly onMessage?: ((message: JsonObject) => void) | undefined;
  /** Puts what the server asks to the client, and gives the result; throws where it cannot. */
  readonly onAsk?: ((asked: ServerRequest) => Promise<JsonObject>) | undefined;
}

/** What a client wants of tasks: where it speaks 2026-07-28 the server decides. */
export type Task =
  | { readonly isModern: true }
  | { readonly isModern: false; readonly wanted: JsonObject };

/** A request to run one tool, or another one to a server, on its way through the gates. */
export interface Call extends Meanwhile {
  /** The tool, or the door of another request: `server:@resources`, `server:@prompts` and others. */
  readonly id: ToolId;
  /** The arguments of the tool, or the params of another request. */
  readonly arguments: JsonObject;
  /** The method of MCP where it calls no tool, such as `resources/read`. */
  readonly method?: string;
  /** What the client said of the request to whoever serves it. */
  readonly meta?: JsonObject;
  /** Where the call may go on as a task: as a client of which revision wants it. */
  readonly task?: Task;
  /**
   * The way it came: `tools/call`, `call`, `batch`, `cli`, `library`, another method of MCP, or
   * `server` for what a server asks of the client within a call.
   */
  readonly via: string;
  /** Whether a person typed the name of the tool at a terminal. */
  readonly isTyped?: boolean;
  /** Whether another call waits for it, whose place it would else wait for. */
  readonly isNested?: boolean;
  /** Whose call it is; `local` where there is one person. */
  readonly actor: string;
  readonly signal: AbortSignal;
  /** Ties the records and frames of one call together; unique in this process. */
  readonly callId: string;
  readonly answer?: Answer;
  /** Whether its start could not be recorded: it runs as it was looked at, or not at all. */
  readonly isLost?: boolean;
  readonly verdict?: Verdict;
  /** Set where the definition of its server adds arguments. */
  readonly fixed?: FixedArguments | undefined;
}

/** The arguments of a call that gets more than its caller gave. */
export interface FixedArguments {
  /** Those that the caller gave. */
  readonly given: JsonObject;
  /** All of them, as a person is shown them: without values that may be secrets. */
  readonly shown: JsonObject;
}

/** Gives the arguments of a call as a person is shown them. */
export function shownArguments({ arguments: args, fixed }: Call): JsonObject {
  return fixed?.shown ?? args;
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
  | {
    readonly kind: "result";
    readonly result: ToolResult;
    /** Whether nobody could tell if it fits the schema that its tool gave for it. */
    readonly isUnchecked?: boolean;
    /** How a task stands that this tells of: it is not the result of its tool. */
    readonly task?: string;
    /** What is wrong with the result, where its server said more than that. */
    readonly code?: ErrorCode;
  }
  | { readonly kind: "ask"; readonly question: Question };

/** Runs a call. */
export type CallTool = (call: Call) => Promise<Outcome>;

/** Wraps a call with one concern; `O` may say more of it than the client is told. */
export type Gate<C extends Call = Call, O = Outcome> = (
  next: (call: C) => Promise<O>,
) => (call: C) => Promise<O>;

/** Puts gates around a call, the first one outermost. */
export function through<C extends Call, O>(
  gates: readonly Gate<C, O>[],
  inner: (call: C) => Promise<O>,
): (call: C) => Promise<O> {
  return gates.reduceRight((next, gate) => gate(next), inner);
}

/** A result of one text block. */
export function textResult(text: string): ToolResult {
  return { content: [{ type: "text", text }] };
}

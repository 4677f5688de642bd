/**
 * Makes a call that PML asks about, on either revision, and passes its question to the test, which
 * may answer as no honest client would.
 *
 * @module
 */

import assert from "node:assert/strict";
import type { Message } from "../kit/json_rpc.ts";
import type { RawStdio } from "../kit/raw_stdio.ts";
import { until } from "../kit/wait.ts";

/** A user takes longer to read than a client that answers by itself. */
export const READING_MS = 330;

/** A call of a tool. */
export interface ToolCall {
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

/** A question, and functions that answer it. */
export interface Question {
  /** The text for the user. */
  readonly text: string;
  /** The answers that the form offers. */
  readonly replies: readonly string[];
  /** The call that the question is about. */
  readonly call: ToolCall;
  /** The handle of the question; only the newer protocol shows it. */
  readonly state: string;
  /**
   * Sends the answer of the client and returns the outcome of the call. If the user has not read
   * the texts of a tool, a yes to a question without them is followed by a yes to the question that
   * shows them. Each other question is returned as the outcome.
   */
  readonly answer: (result: unknown) => Promise<Message>;
  /** Sends the answer of the client, and nothing else. */
  readonly answerOnce: (result: unknown) => Promise<Message>;
}

/** The outcome of a call: a question, or an answer at once. */
export type Outcome =
  | { readonly kind: "asked"; readonly asked: Question }
  | { readonly kind: "answered"; readonly message: Message };

/** The outcome of a request other than a tool call. */
export type RequestOutcome =
  | { readonly kind: "asked"; readonly asked: Omit<Question, "call"> }
  | { readonly kind: "answered"; readonly message: Message };

/** Makes a call, and returns its question or its answer. */
export async function outcomeOf(
  pml: RawStdio,
  call: ToolCall,
  more: Readonly<Record<string, unknown>> = {},
): Promise<Outcome> {
  const outcome = await outcomeOfRequest(pml, "tools/call", { ...call, ...more });
  return outcome.kind === "asked" ? { kind: "asked", asked: { ...outcome.asked, call } } : outcome;
}

/** Sends a request, and returns its question or its answer. */
export async function outcomeOfRequest(
  pml: RawStdio,
  method: string,
  params: Readonly<Record<string, unknown>>,
): Promise<RequestOutcome> {
  const before = pml.messages.length;
  const { answer } = pml.begin(method, params);
  const asked = () =>
    pml.messages.slice(before).find(({ method }) => method === "elicitation/create");
  let isOver = false;
  const held = (async () => {
    await until(() => isOver || asked() !== undefined);
    return asked();
  })();
  const first = await Promise.race([answer, held]).finally(() => isOver = true);
  assert.ok(first !== undefined, "neither a question nor an answer came");
  if (first.method === "elicitation/create") {
    return { kind: "asked", asked: askedNow(pml, first, answer) };
  }
  if (String(first.result?.resultType) !== "input_required") {
    return { kind: "answered", message: first };
  }
  return { kind: "asked", asked: askedByResult(pml, first, { method, params }) };
}

/** Makes a call that must lead to a question. */
export async function questionOf(pml: RawStdio, call: ToolCall): Promise<Question> {
  const outcome = await outcomeOf(pml, call);
  assert.equal(outcome.kind, "asked", JSON.stringify(outcome));
  return (outcome as Extract<Outcome, { readonly kind: "asked" }>).asked;
}

/** Makes a call that must be answered without a question. */
export async function answerOf(pml: RawStdio, call: ToolCall): Promise<Message> {
  const outcome = await outcomeOf(pml, call);
  assert.equal(outcome.kind, "answered", JSON.stringify(outcome));
  return (outcome as Extract<Outcome, { readonly kind: "answered" }>).message;
}

/** Waits as long as a user reads. */
export async function read(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, READING_MS));
}

/** Returns the result that a client sends when the user picked an answer of the form. */
export function picked(answer: unknown): unknown {
  return { action: "accept", content: { answer } };
}

function askedNow(
  pml: RawStdio,
  { id, params }: Message,
  answer: Promise<Message>,
): Omit<Question, "call"> {
  const answerOnce = async (result: unknown) => {
    await pml.sendJson({ jsonrpc: "2.0", id, result });
    return await answer;
  };
  return {
    ...formOf(params),
    state: "",
    answerOnce,
    answer: async (result) => {
      const before = pml.messages.length;
      const answered = answerOnce(result);
      if (!isYes(result) || showsTexts(params)) return await answered;
      let isOver = false;
      const asked = () => pml.messages.slice(before).find(showsTexts);
      const more = until(() => isOver || asked() !== undefined).then(asked);
      const first = await Promise.race([answered, more]).finally(() => isOver = true);
      if (first === undefined || first.method !== "elicitation/create") return await answered;
      await pml.sendJson({ jsonrpc: "2.0", id: first.id, result });
      return await answered;
    },
  };
}

function isYes(result: unknown): boolean {
  return JSON.stringify(result) === JSON.stringify(picked("Yes"));
}

/** Returns whether a question shows texts of a tool that the user has not read. */
function showsTexts(question: unknown): boolean {
  return JSON.stringify(question)?.includes("describes it to the model") === true;
}

function askedByResult(
  pml: RawStdio,
  { result }: Message,
  request: { readonly method: string; readonly params: object },
): Omit<Question, "call"> {
  const { method, params } = request;
  const [[key = "", shown] = []] = Object.entries(result?.inputRequests ?? {});
  const requestState = String(result?.requestState);
  const answerOnce = (response: unknown) =>
    pml.request(method, { ...params, requestState, inputResponses: { [key]: response } });
  return {
    ...formOf(shown?.params as unknown),
    state: requestState,
    answerOnce,
    answer: async (response) => {
      const message = await answerOnce(response);
      const isMore = isYes(response) && !showsTexts(shown) &&
        String(message.result?.resultType) === "input_required" && showsTexts(message);
      return isMore ? await askedByResult(pml, message, request).answerOnce(response) : message;
    },
  };
}

function formOf(params: unknown): Pick<Question, "text" | "replies"> {
  const { message, requestedSchema } = params as {
    readonly message: string;
    readonly requestedSchema: { readonly properties: { readonly answer: { enum: string[] } } };
  };
  return { text: message, replies: requestedSchema.properties.answer.enum };
}

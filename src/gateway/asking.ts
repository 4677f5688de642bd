/**
 * Questions to the person through the client: one way of asking for both protocol eras.
 *
 * @module
 */

import {
  type CallToolResult,
  inputRequired,
  type InputRequiredResult,
  inputResponse,
  type ServerContext,
} from "@modelcontextprotocol/server";
import type { Answer, Question, Reply } from "../core/call.ts";
import { isObject } from "../core/json.ts";

const KEY = "approval";
const CAPABILITIES = "io.modelcontextprotocol/clientCapabilities";

/** What a `tools/call` request is answered with. */
export type Reaction = CallToolResult | InputRequiredResult;

/** Puts a question to the person; the handle travels as the state that the answer must carry. */
export function ask(question: Question): InputRequiredResult {
  const approval = inputRequired.elicit(formOf(question));
  return inputRequired({ inputRequests: { [KEY]: approval }, requestState: question.handle });
}

/**
 * Puts a question to the person through a client of the older protocol, whose call waits
 * meanwhile; gives nothing where the client fails to ask, or nobody answers in `ms`.
 */
export async function askMeanwhile(
  question: Question,
  from: { readonly context: ServerContext; readonly ms: number },
): Promise<Answer | undefined> {
  const { signal, send } = from.context.mcpReq;
  const params = { mode: "form" as const, ...formOf(question) };
  try {
    const said = await send({ method: "elicitation/create", params }, { signal, timeout: from.ms });
    const { action, content } = said;
    return { handle: question.handle, reply: replyOf(action, content?.answer) };
  } catch (error) {
    if (signal.aborted) throw error;
    return undefined;
  }
}

/** Reads the answer that a request carries; undefined for a first request. */
export function answerOf(context: ServerContext): Answer | undefined {
  const handle = context.mcpReq.requestState<unknown>();
  if (typeof handle !== "string") return undefined;
  const view = inputResponse(context.mcpReq.inputResponses, KEY);
  if (view.kind !== "elicit") return { handle, reply: "cancelled" };
  return { handle, reply: replyOf(view.action, view.content?.answer) };
}

/** Tells whether the client that sent a request can put a form to its person. */
export function canAsk(context: ServerContext, declared: unknown): boolean {
  const envelope: Readonly<Record<string, unknown>> | undefined = context.mcpReq.envelope;
  const capabilities = envelope?.[CAPABILITIES] ?? declared;
  if (!isObject(capabilities) || !isObject(capabilities.elicitation)) return false;
  const modes = Object.keys(capabilities.elicitation);
  // An empty object is how clients said "forms" before there were modes.
  return modes.length === 0 || modes.includes("form");
}

function formOf(question: Question) {
  const replies = question.always ? ["Yes", "Always", "No"] : ["Yes", "No"];
  const answer = { type: "string" as const, title: "Your answer", enum: replies };
  return {
    message: question.text,
    requestedSchema: { type: "object" as const, properties: { answer }, required: ["answer"] },
  };
}

function replyOf(action: "accept" | "decline" | "cancel", answer: unknown): Reply {
  if (action === "cancel") return "cancelled";
  return action === "accept" && (answer === "Yes" || answer === "Always") ? answer : "No";
}

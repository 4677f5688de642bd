/**
 * Writes PML's approval requests, and requests to open a web page, as elicitations of MCP.
 *
 * @module
 */

import {
  answerLabel,
  answersInForm,
  type ApprovalReply,
  replyOfLabel,
} from "../../protocol/answers.ts";
import type { ApprovalAnswer, Page, Question } from "../../protocol/call.ts";
import { isObject, type JsonObject, objectOf } from "../../core/json.ts";
import type { RequestContext } from "../../protocol/connection.ts";
import type { Client } from "../_clients.ts";
import { appliesDefaults } from "./capabilities.ts";
import type { RequestInput } from "./request_client.ts";
import { APPROVAL_KEY, type InputRequired } from "./pending_input.ts";

/** Returns the result that asks a client of 2026-07-28; the handle is its `requestState`. */
export function approvalResult(question: Question, capabilities: JsonObject): InputRequired {
  const params = createForm(question, capabilities);
  const approval = { method: "elicitation/create", params };
  return {
    resultType: "input_required",
    inputRequests: { [APPROVAL_KEY]: approval },
    requestState: question.handle,
  };
}

/** Asks the user through the client. Returns undefined if the client fails to ask. */
export async function requestApproval(
  question: Question,
  { requestInput, capabilities, signal }: {
    readonly requestInput: RequestInput;
    readonly capabilities: JsonObject;
    readonly signal: AbortSignal;
  },
): Promise<ApprovalAnswer | undefined> {
  try {
    const params = createForm(question, capabilities);
    const result = await requestInput({ method: "elicitation/create", params, signal });
    return { handle: question.handle, reply: replyOf(result) };
  } catch (error) {
    if (signal.aborted) throw error;
    return undefined;
  }
}

/**
 * Returns the reply that a request sends with its `requestState`; undefined without a state. If the
 * state belongs to paused work instead, the reply is `unoffered` and is ignored.
 */
export function approvalAnswerIn(
  { requestState: handle, inputResponses }: RequestContext,
): ApprovalAnswer | undefined {
  if (typeof handle !== "string") return undefined;
  const response: unknown = inputResponses?.[APPROVAL_KEY];
  return { handle, reply: isObject(response) ? replyOf(objectOf(response)) : "unoffered" };
}

/**
 * Asks a client to open a page, and returns whether the user agreed. A client of an older revision
 * is notified when the user has finished the page.
 */
export async function openPage(
  { url, text: message, done }: Page,
  { client, requestInput, signal }: {
    readonly client: Client;
    readonly requestInput: RequestInput;
    readonly signal: AbortSignal;
  },
): Promise<boolean> {
  const elicitationId = crypto.randomUUID();
  const { isStateless, peer } = client;
  const completed = { method: "notifications/elicitation/complete", params: { elicitationId } };
  // If the user never finishes the page, no notification follows.
  if (!isStateless) done.then(() => peer.notification(completed)).catch(() => {});
  const id: JsonObject = isStateless ? {} : { elicitationId };
  const params = { mode: "url", message, url, ...id };
  return (await requestInput({ method: "elicitation/create", params, signal })).action === "accept";
}

function createForm(question: Question, capabilities: JsonObject): JsonObject {
  const replies = answersInForm(question.answers).map(answerLabel);
  const preset = defaultMember(question, capabilities);
  const answer = { type: "string", title: "Your answer", enum: replies, ...preset };
  return {
    mode: "form",
    message: question.text,
    requestedSchema: { type: "object", properties: { answer }, required: ["answer"] },
  };
}

/** Returns the member that preselects an answer in a form. */
function defaultMember({ suggested }: Question, capabilities: JsonObject): JsonObject {
  // A client that applies defaults would send this answer although its user picked nothing.
  // guard: applied-default
  if (appliesDefaults(capabilities)) return {};
  return { default: suggested };
}

function replyOf({ action, content }: JsonObject): ApprovalReply {
  switch (action) {
    case "accept":
      return replyOfLabel(objectOf(content).answer);
    case "decline":
      return "No";
    case "cancel":
      return "cancelled";
    default:
      return "unoffered";
  }
}

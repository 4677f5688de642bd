/**
 * `pml call`: runs one tool, through the same gates as every other call.
 *
 * @module
 */

import type { ApprovalAnswer, Call, CallClient, Question, ToolResult } from "../protocol/call.ts";
import { Cancellation } from "../core/cancellation.ts";
import { asPmlError, type ErrorCode, PmlError } from "../core/errors.ts";
import { numberText } from "../core/exact_number.ts";
import { defined, type JsonObject, quoted, visible } from "../core/json.ts";
import { splitToolId, type ToolId } from "../core/tool_id.ts";
import { parseArguments, parseId, parseObject, takeObject } from "./_arguments.ts";
import type { CommandContext, Shown, Typed } from "./_command_context.ts";
import { decide } from "./_approve.ts";
import { mustBeNew, resultText, saveResult } from "./_result.ts";
import { askReply, isTerminal } from "./_terminal.ts";
import { readAll } from "./_terminal_input.ts";
import { askUntrusted } from "./_trust.ts";
import { plainText, tell, tellProgress } from "./out.ts";

const PROGRESS_MS = 250;
const TRIED: readonly ErrorCode[] = ["UPSTREAM_DOWN", "UPSTREAM_PROTOCOL", "TIMED_OUT"];
const ANSWERED_NO = "you answered no";

/** The tool and the arguments of a call. */
type RequestedCall = Pick<Call, "id" | "arguments">;

/** Calls a tool and shows its result. The result of a failed tool goes to stderr. */
export async function call(
  at: CommandContext,
  { words: [name = "", ...pairs], args = takeObject(pairs), save }: Typed,
): Promise<Shown> {
  if (save !== undefined) mustBeNew(save);
  const id = parseId(name, at.app.servers);
  const base = args === "-" ? parseObject(await readAll(), "on stdin") : parseObject(args);
  const schema = pairs.length === 0 ? {} : await schemaOf(id, at);
  const value = await answered({ id, arguments: parseArguments(pairs, { base, schema }) }, at);
  if (value.isError === true) return { value, text: "", note: resultText(value), code: 1 };
  if (save === undefined) return { value, text: resultText(value), paint: plainText };
  const { text, note, files } = await saveResult(value, save);
  return { value: { files }, text, paint: plainText, note };
}

/** Returns the input schema of a tool. A server must be trusted before it is asked for one. */
async function schemaOf(id: ToolId, { app, signal }: CommandContext): Promise<JsonObject> {
  if (isTerminal() && app.policy.now.judge(id).kind !== "deny") {
    const open = await app.policy.unapproved(splitToolId(id).server);
    if (open !== undefined && !await askUntrusted(open, signal)) {
      throw declined(id, "you did not trust its server");
    }
  }
  try {
    return (await app.servers.definition(id)).inputSchema;
  } catch (error) {
    // A failed attempt is not repeated. The call itself, which passes the same checks, reports any
    // other reason.
    if (TRIED.includes(asPmlError(error).code)) throw error;
    return {};
  }
}

/** Calls a tool, and calls it again with each answer of the user, until there is a result. */
export async function answered(call: RequestedCall, at: CommandContext): Promise<ToolResult> {
  let answer: ApprovalAnswer | undefined;
  let reply: ApprovalAnswer["reply"] | undefined;
  const onQuestion = async (question: Question) => {
    const latest = await ask(question, { ...at, id: call.id });
    reply = latest?.reply;
    return latest;
  };
  const isTyped = isTerminal();
  const client: CallClient = isTyped
    ? { onProgress: progressTeller(), onQuestion, ...await formsOf(at) }
    : { onQuestion };
  using cancellation = Cancellation.of(at.signal);
  for (;;) {
    const outcome = await (await at.app.callPath()).callTool({
      ...call,
      ...defined({ answer }),
      via: "cli",
      actor: "local",
      isTyped,
      cancellation,
      client,
      callId: crypto.randomUUID(),
    }).catch((error) => {
      // This error is written for models: it says "the user".
      const isDeclined = asPmlError(error).code === "APPROVAL_DECLINED";
      throw isDeclined ? refusalOf(call.id, reply) ?? error : error;
    });
    if (outcome.kind === "result") return outcome.result;
    // The approvals ignore a "No" that comes very fast. Here the user typed it, so it counts.
    const refusal = refusalOf(call.id, reply);
    if (refusal !== undefined) throw refusal;
    answer = await onQuestion(outcome.question);
  }
}

/** Returns how a server asks the user while it works. */
async function formsOf(at: CommandContext) {
  const { terminalForms } = await import("./_form.ts");
  return await terminalForms(at);
}

/** Returns a function that shows the progress of a call, a few times a second at most. */
function progressTeller(): NonNullable<CallClient["onProgress"]> {
  let lastReport = 0;
  return ({ progress, total, message }) => {
    if (Date.now() - lastReport < PROGRESS_MS) return;
    lastReport = Date.now();
    const count = [progress, total].flatMap((one) => numberText(one) ?? []).join(" of ");
    tellProgress(`… ${visible(message ?? count)}`);
  };
}

/**
 * Asks the user a question. Without a terminal it throws and leaves the question for `pml
 * approve`. A question that is too long for a client is asked as `pml approve` asks it.
 */
async function ask(
  question: Question,
  { id, ...at }: CommandContext & { readonly id: ToolId },
): Promise<ApprovalAnswer | undefined> {
  if (!isTerminal()) throw await (await at.app.callPath()).leave(question);
  const { handle, text, answers, terminalOnly, otherwise } = question;
  if (!terminalOnly) {
    tell(`${text}\n`);
    return {
      handle,
      // A yes to a question about a server lasts.
      reply: await askReply("May it run?", {
        answers,
        once: otherwise === undefined,
        signal: at.signal,
      }),
    };
  }
  const waiting = await (await at.app.callPath()).approvals.leave(handle, otherwise);
  if (waiting === undefined) throw declined(id, "its approval request no longer exists");
  const decision = await decide(waiting, at);
  if (decision === "approved") return undefined;
  throw declined(id, decision === "refused" ? ANSWERED_NO : "its approval request has no answer");
}

/** Returns the error for a reply that refuses a call; undefined for other replies. */
function refusalOf(id: ToolId, reply: ApprovalAnswer["reply"] | undefined): PmlError | undefined {
  if (reply === "No") return declined(id, ANSWERED_NO);
  if (reply === "Never") return declined(id, "you answered never");
  return reply === "cancelled" ? declined(id, "you dismissed the question") : undefined;
}

function declined(id: ToolId, why: string): PmlError {
  return new PmlError("APPROVAL_DECLINED", `Cannot run ${quoted(id, 200)}: ${why}`, {
    hint: "Nothing was run",
  });
}

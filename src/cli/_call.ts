/**
 * `pml call`: runs one tool, with the same checks as every other call.
 *
 * @module
 */

import {
  type ApprovalAnswer,
  type Call,
  type CallClient,
  type Question,
  textResult,
  type ToolResult,
} from "../protocol/call.ts";
import { outputOf } from "../protocol/output.ts";
import { Cancellation } from "../core/cancellation.ts";
import { asPmlError, type ErrorCode, PmlError } from "../core/errors.ts";
import { numberText } from "../core/exact_number.ts";
import { type Json, type JsonObject, quoted, visible, withoutUndefined } from "../core/json.ts";
import { splitToolId, type ToolId } from "../core/tool_id.ts";
import { parseArguments, parseId, parseObject, takeObject } from "./_arguments.ts";
import type { CommandContext, CommandInput, CommandOutput } from "./_command_context.ts";
import { usage } from "./_failure.ts";
import { deniedText, yesLabel } from "./_approval_answers.ts";
import { decide } from "./_approve.ts";
import { assertNew, resultText, saveResult } from "./_result.ts";
import { askReply, isTerminal } from "./_terminal.ts";
import { readAll } from "./_terminal_input.ts";
import { WorkspaceApps } from "./_workspace_apps.ts";
import { askUntrusted } from "./_trust.ts";
import { plainText, tell, tellProgress } from "./out.ts";

/** The minimum time between two reports of progress, in milliseconds. */
const PROGRESS_MS = 250;
/** The codes of errors that show that PML tried to reach the server. */
const CONNECTION_ERRORS: readonly ErrorCode[] = ["UPSTREAM_DOWN", "UPSTREAM_PROTOCOL", "TIMED_OUT"];
const ANSWERED_NO = "you answered no";

/** The tool and the arguments of a call. */
type RequestedCall = Pick<Call, "id" | "arguments">;

/** Calls a tool and shows its result. Prints the result of a failed tool to stderr. */
export async function call(
  context: CommandContext,
  { words: [name = "", ...pairs], args = takeObject(pairs), select, save }: CommandInput,
): Promise<CommandOutput> {
  if (save !== undefined) assertNew(save);
  const { app, signal } = context;
  const selector = select === undefined ? undefined : (await app.workflow()).largeResults;
  // Checks the expression first, so that the tool does not run if it cannot be parsed.
  if (select !== undefined) await selector?.assertSelects(select, signal).catch(refuseSelect);
  const id = parseId(name, context.app.servers);
  const base = args === "-" ? parseObject(await readAll(), "on stdin") : parseObject(args);
  const schema = pairs.length === 0 ? {} : await requestSchema(id, context);
  const value = await callWithAnswers(
    { id, arguments: parseArguments(pairs, { base, schema }) },
    context,
  );
  if (value.isError === true) return { value, text: "", note: resultText(value), code: 1 };
  try {
    const part = select && await selector?.select(outputOf(value), { select, signal });
    const result = part === undefined ? value : toResult(part);
    if (save === undefined) {
      return { value: part ?? value, text: resultText(result), paint: plainText };
    }
    const { text, note, files } = await saveResult(result, save);
    return { value: { files }, text, paint: plainText, note };
  } catch (error) {
    if (signal.aborted) throw error;
    // The tool must not run again for its result, so the result is shown whole.
    const note = `The tool ran, and this is its whole result. ${asPmlError(error).message}`;
    return { value, text: resultText(value), paint: plainText, note, code: 1 };
  }
}

/** Throws the error of a selection as `USAGE`, because its hint is about `--select`, not the tool. */
function refuseSelect(error: unknown): never {
  const { message, hint = "Select another part" } = asPmlError(error);
  throw usage(message, hint);
}

/** Returns the selected part of a result as a result. */
function toResult(part: Json): ToolResult {
  return typeof part === "string" ? textResult(part) : { content: [], structuredContent: part };
}

/** Returns the input schema of a tool. Asks the user to trust the server first, because it may start. */
async function requestSchema(id: ToolId, context: CommandContext): Promise<JsonObject> {
  const { app } = context;
  if (isTerminal() && app.policy.now.judge(id).kind !== "deny") {
    const unapproved = await app.policy.findUnapproved(splitToolId(id).server);
    if (unapproved !== undefined && await askUntrusted(context, unapproved) === undefined) {
      throw declinedError(id, "you did not trust its server");
    }
  }
  try {
    return (await app.servers.definition(id)).inputSchema;
  } catch (error) {
    // The call would only repeat a failed connection. It reports all other errors itself.
    if (CONNECTION_ERRORS.includes(asPmlError(error).code)) throw error;
    return {};
  }
}

/**
 * Calls a tool, and calls it again with each answer of the user, until it returns a result. If it is
 * a tool of a draft, a yes about its code is not once: the question names how long it is valid.
 */
export async function callWithAnswers(
  call: RequestedCall,
  context: CommandContext,
  { isDraft = false }: { readonly isDraft?: boolean } = {},
): Promise<ToolResult> {
  let answer: ApprovalAnswer | undefined;
  let reply: ApprovalAnswer["reply"] | undefined;
  const onQuestion = async (question: Question) => {
    const latest = await ask(question, { ...context, id: call.id, isDraft });
    reply = latest?.reply;
    return latest;
  };
  const isTyped = isTerminal();
  const client: CallClient = isTyped
    ? { onProgress: progressReporter(), onQuestion, ...await loadForms(context) }
    : { onQuestion };
  const reach = (await context.app.callPath()).alwaysRules.reachOf(call);
  using cancellation = Cancellation.of(context.signal);
  for (;;) {
    const outcome = await (await context.app.callPath()).callTool({
      ...call,
      ...withoutUndefined({ answer }),
      via: "cli",
      actor: "local",
      isTyped,
      cancellation,
      client,
      callId: crypto.randomUUID(),
    }).catch((error) => {
      // The text of this error is for models: it names "the user". Here the user reads it.
      const isDeclined = asPmlError(error).code === "APPROVAL_DECLINED";
      throw isDeclined ? errorForReply(call.id, reply, reach) ?? error : error;
    });
    if (outcome.kind === "result") return outcome.result;
    // The approvals ignore a very fast "No", as a client may send it without a user. Here a user typed.
    const refusal = errorForReply(call.id, reply, reach);
    if (refusal !== undefined) throw refusal;
    answer = await onQuestion(outcome.question);
  }
}

/** Returns the functions with which a server can ask the user during a call. */
async function loadForms(context: CommandContext) {
  const { terminalForms } = await import("./_form.ts");
  return await terminalForms(context);
}

/** Returns a function that shows the progress of a call, at most every `PROGRESS_MS`. */
function progressReporter(): NonNullable<CallClient["onProgress"]> {
  let lastReport = 0;
  return ({ progress, total, message }) => {
    if (Date.now() - lastReport < PROGRESS_MS) return;
    lastReport = Date.now();
    const count = [progress, total].flatMap((value) => numberText(value) ?? []).join(" of ");
    tellProgress(`… ${visible(message ?? count)}`);
  };
}

/**
 * Asks the user a question. Without a terminal, stores the question for `pml approve` and throws. A
 * question that is too long for a client is asked as `pml approve` does.
 */
async function ask(
  question: Question,
  { id, isDraft, ...context }: CommandContext & { readonly id: ToolId; readonly isDraft: boolean },
): Promise<ApprovalAnswer | undefined> {
  if (!isTerminal()) throw await (await context.app.callPath()).storeQuestion(question);
  const { handle, text, answers, terminalOnly, otherwise } = question;
  if (!terminalOnly) {
    tell(`${text}\n`);
    return {
      handle,
      reply: await askReply("May it run?", {
        answers,
        yes: isDraft && otherwise !== undefined ? "yes" : yesLabel(otherwise),
        signal: context.signal,
      }),
    };
  }
  const waiting = await (await context.app.callPath()).approvals.saveForTerminal(handle, otherwise);
  if (waiting === undefined) throw declinedError(id, "its approval request no longer exists");
  await using apps = new WorkspaceApps(context.app, context.signal);
  const decision = await decide({ pending: waiting }, context, apps);
  if (decision === "approved") return undefined;
  throw declinedError(
    id,
    decision === "refused" ? ANSWERED_NO : "its approval request has no answer",
  );
}

/**
 * Returns the error for a reply that refuses a call; undefined for other replies. `reach` names the
 * file into which "Never" writes its rule.
 */
function errorForReply(
  id: ToolId,
  reply: ApprovalAnswer["reply"] | undefined,
  reach: string,
): PmlError | undefined {
  if (reply === "No") return declinedError(id, ANSWERED_NO);
  if (reply === "Never") return declinedError(id, "you answered never", deniedText(id, reach));
  return reply === "cancelled" ? declinedError(id, "you dismissed the question") : undefined;
}

function declinedError(id: ToolId, why: string, effect?: string): PmlError {
  return new PmlError("APPROVAL_DECLINED", `Cannot run ${quoted(id, 200)}: ${why}`, {
    hint: effect === undefined ? "Nothing was run" : `Nothing was run. ${effect}`,
  });
}

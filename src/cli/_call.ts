/**
 * `pml call`: runs one tool through the one door.
 *
 * @module
 */

import type { Answer, Call, Question, ToolResult } from "../core/call.ts";
import { PmlError } from "../core/errors.ts";
import { type JsonObject, quoted, visible } from "../core/json.ts";
import { splitToolId, type ToolId } from "../core/tool_id.ts";
import { parseArguments, parseId, parseObject } from "./_arguments.ts";
import type { CommandContext, Shown, Typed } from "./_command_context.ts";
import { askUntrusted, decide } from "./_persons_word.ts";
import { textOf } from "./_result.ts";
import { askReply, isTerminal } from "./_terminal.ts";
import { tell } from "./out.ts";

const PROGRESS_MS = 250;

type Asked = Pick<Call, "id" | "arguments">;

/** Calls a tool and shows its result: that of a tool that failed on stderr. */
export async function call(
  at: CommandContext,
  { words: [name = "", ...pairs], args = "{}" }: Typed,
): Promise<Shown> {
  const id = parseId(name, at.app.servers);
  const stdin = args === "-";
  const base = parseObject(stdin ? await new Response(Deno.stdin.readable).text() : args);
  const schema = pairs.length === 0 ? {} : await schemaOf(id, at);
  const value = await answered({ id, arguments: parseArguments(pairs, { base, schema }) }, at);
  const text = textOf(value);
  return value.isError === true ? { value, text: "", note: text, code: 1 } : { value, text };
}

/** The types of what was typed stand in the schema; a server must be trusted to give it. */
async function schemaOf(id: ToolId, { app, signal }: CommandContext): Promise<JsonObject> {
  if (isTerminal() && app.policy.now.judge(id).kind !== "deny") {
    const open = await app.policy.unapproved(splitToolId(id).server);
    if (open !== undefined && !await askUntrusted(open, signal)) throw declined(id);
  }
  try {
    return (await app.servers.definition(id)).inputSchema;
  } catch {
    // The call itself says why, through the same gates as every other.
    return {};
  }
}

/** Calls, and calls again with what the person answered, until there is a result. */
export async function answered(asked: Asked, at: CommandContext): Promise<ToolResult> {
  let answer: Answer | undefined;
  const onProgress = progressTeller();
  for (;;) {
    const outcome = await (await at.app.callPath()).callTool({
      ...asked,
      answer,
      via: "cli",
      actor: "local",
      signal: at.signal,
      callId: crypto.randomUUID(),
      ...(isTerminal() ? { onProgress, isTyped: true } : {}),
    });
    if (outcome.kind === "result") return outcome.result;
    // A refusal that came at once is taken for none there, but a person typed it here.
    if (answer?.reply === "No" || answer?.reply === "cancelled") throw declined(asked.id);
    answer = await ask(outcome.question, { ...at, id: asked.id });
  }
}

/** Tells a person how far a call has come, a few times a second at most. */
function progressTeller(): NonNullable<Call["onProgress"]> {
  let told = 0;
  return ({ progress, total, message }) => {
    if (Date.now() - told < PROGRESS_MS) return;
    told = Date.now();
    const count = total === undefined ? String(progress) : `${progress} of ${total}`;
    tell(`… ${visible(message ?? count)}`);
  };
}

/** Asks the person; a question too long for that, and a missing terminal, go to `pml approve`. */
async function ask(
  question: Question,
  { id, ...at }: CommandContext & { readonly id: ToolId },
): Promise<Answer | undefined> {
  if (!isTerminal()) throw await (await at.app.callPath()).leave(question);
  const { handle, text, always, terminalOnly } = question;
  if (!terminalOnly) {
    tell(`${text}\n`);
    return { handle, reply: await askReply("May it run?", { always, signal: at.signal }) };
  }
  const waiting = await (await at.app.callPath()).approvals.leave(handle);
  if (waiting === undefined || await decide(waiting, at) !== "approved") throw declined(id);
  return undefined;
}

function declined(id: ToolId): PmlError {
  return new PmlError("APPROVAL_DECLINED", `Cannot run ${quoted(id, 200)}: it was declined`, {
    hint: "Nothing was run",
  });
}

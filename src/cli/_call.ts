/**
 * `pml call`: runs one tool through the one door.
 *
 * @module
 */

import type { App } from "../app.ts";
import type { Answer, Call, Outcome, Progress, Question, ToolResult } from "../core/call.ts";
import { PmlError } from "../core/errors.ts";
import { type JsonObject, quoted } from "../core/json.ts";
import { splitToolId, type ToolId } from "../core/tool_id.ts";
import { parseArguments, parseId, parseObject } from "./_arguments.ts";
import { type Visit, visit } from "./_house.ts";
import { askUntrusted, decide } from "./_persons_word.ts";
import { showResult } from "./_result.ts";
import { askReply, isTerminal } from "./_terminal.ts";
import { ProgressLine, tell } from "./out.ts";

/** The options of `pml call`. */
export interface CallOptions {
  readonly args?: string;
  readonly json?: boolean;
}

/** What is asked for: a tool, and its arguments as they were typed. */
interface Wish {
  readonly id: ToolId;
  readonly pairs: readonly string[];
  readonly base: JsonObject;
}

/** Calls a tool and shows its result. */
export async function call(
  name: string,
  pairs: readonly string[],
  options: CallOptions,
): Promise<number> {
  const id = parseId(name);
  return await visit(async (at) => {
    const base = options.args === undefined ? {} : parseObject(await textOf(options.args, at.app));
    const result = await answered({ id, pairs, base }, at);
    return showResult(result, { json: options.json === true });
  });
}

/** Calls, and calls again with what the person answered, until there is a result. */
async function answered(wish: Wish, { app, signal }: Visit): Promise<ToolResult> {
  const { id } = wish;
  const given = await argumentsOf(wish, { app, signal });
  let answer: Answer | undefined;
  for (;;) {
    const outcome = await attempt({ id, arguments: given, answer }, { app, signal });
    if (outcome.kind === "result") return outcome.result;
    if (answer !== undefined && answer.reply !== "Yes" && answer.reply !== "Always") {
      throw declined(id);
    }
    answer = await ask(outcome.question, { app, signal, id });
  }
}

async function attempt(
  { answer, ...asked }: Pick<Call, "id" | "arguments"> & { readonly answer: Answer | undefined },
  { app, signal }: Visit,
): Promise<Outcome> {
  using line = new ProgressLine();
  return await app.callTool({
    ...asked,
    via: "cli",
    actor: "local",
    signal,
    callId: crypto.randomUUID(),
    onProgress: (progress) => line.show(progressText(progress)),
    ...(answer === undefined ? {} : { answer }),
  });
}

/** Asks the person; a question too long for that, and a missing terminal, go to `pml approve`. */
async function ask(
  question: Question,
  { app, signal, id }: Visit & { readonly id: ToolId },
): Promise<Answer | undefined> {
  if (!isTerminal()) throw await app.leave(question);
  const { handle, text, always, terminalOnly } = question;
  if (!terminalOnly) {
    tell(`${text}\n`);
    return { handle, reply: await askReply("May it run?", { always, signal }) };
  }
  const left = await app.leave(question);
  const waiting = (await (await app.approvals()).pendingApprovals())
    .find((each) => each.id === left.detail?.approval);
  if (waiting === undefined) throw left;
  if (await decide(waiting, { app, signal }) !== "approved") throw declined(id);
  return undefined;
}

/** The types of what was typed stand in the schema; a server must be trusted to give it. */
async function argumentsOf(
  { id, pairs, base }: Wish,
  { app, signal }: Visit,
): Promise<JsonObject> {
  if (pairs.length === 0) return base;
  const { server } = splitToolId(id);
  if (isTerminal() && app.judge(id).kind !== "deny") {
    const open = await app.policy.unapproved(server);
    if (open !== undefined && !await askUntrusted(open, signal)) throw declined(id);
  }
  const schema = await schemaOf(app, id);
  return parseArguments(pairs, { base, schema });
}

async function schemaOf(app: App, id: ToolId): Promise<JsonObject> {
  try {
    return (await app.servers.definition(id)).inputSchema;
  } catch {
    // The call itself says why, through the same gates as every other.
    return {};
  }
}

async function textOf(args: string, app: App): Promise<string> {
  if (args !== "-") return args;
  const most = app.config().limits.inputBytes;
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of Deno.stdin.readable) {
    length += chunk.length;
    if (length > most) {
      throw new PmlError("INPUT_TOO_LARGE", `Cannot read the arguments: over ${most} bytes came`, {
        hint: "Send less, or raise limits.input_bytes in config.yaml of the PML home",
      });
    }
    chunks.push(chunk);
  }
  return await new Blob(chunks as BlobPart[]).text();
}

function progressText({ progress, total, message }: Progress): string {
  const part = total === undefined ? `${progress}` : `${progress} of ${total}`;
  return message === undefined ? part : `${part}: ${message}`;
}

function declined(id: ToolId): PmlError {
  return new PmlError("APPROVAL_DECLINED", `Cannot run ${quoted(id, 200)}: it was declined`, {
    hint: "Nothing was run",
  });
}

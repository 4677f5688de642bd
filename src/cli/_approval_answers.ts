/**
 * The answers that the user can give to a waiting call, and their effects. The terminal and the page
 * use the same ones.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { type ErrorCode, PmlError } from "../core/errors.ts";
import { quoted, withoutUndefined } from "../core/json.ts";
import { splitToolId, type ToolId } from "../core/tool_id.ts";
import { answersOf } from "../policy/approvals.ts";
import { type ToolSet, unreadIn } from "../policy/tool_set.ts";
import type { OfferedAnswer } from "../protocol/answers.ts";
import type { Call } from "../protocol/call.ts";
import { type CommandContext, recordAction } from "./_command_context.ts";
import { setForPerson } from "./_config_file.ts";
import { shellWord } from "./_shell_word.ts";

type CallPath = Awaited<ReturnType<App["callPath"]>>;

/** A call that waits for the user's answer. */
export type Pending = Awaited<ReturnType<CallPath["waitingCalls"]>>[number];

/** Where the user answers. */
export type AnswerChannel = "terminal" | "page";

/** The answers that the user can give to a waiting call now. */
export interface Offers {
  readonly answers: readonly OfferedAnswer[];
  /** The call; undefined if no answer can add a rule for it. */
  readonly call: Pick<Call, "id" | "arguments"> | undefined;
  /** The rule that "Always" writes. */
  readonly rule: string | undefined;
  /** The deny rule that "Never" writes. */
  readonly never: string | undefined;
  /** The sets of tools that an answer can allow. */
  readonly sets: readonly ToolSet[];
  /** The file into which lasting answers write rules, and where these apply, as text. */
  readonly reach: string;
  /** Why no answer can allow later calls; undefined if one can. */
  readonly whyOnce?: string;
}

/** The result of an answer. */
export interface AnswerResult {
  /** `outdated` if the answer could not count, and nothing was approved. */
  readonly decision: "approved" | "refused" | "outdated";
  /** One sentence for the user. */
  readonly text: string;
  /** The present question about the same call, if PML replaced an outdated one. */
  readonly next?: Pending;
}

/** The object that a yes stores, by the error code of a call that waits for this approval. */
const STORED: Partial<Record<ErrorCode, readonly [label: string, sentence: string]>> = {
  WORKSPACE_UNTRUSTED: ["trust the file", "trusts the file"],
  APPROVAL_STALE: ["approve the change", "approves the change"],
  NAME_CONFLICT: ["approve the server", "approves the server"],
};

/**
 * Returns the effect of a yes in a few words. `otherwise` is the error code of the call if the user
 * cannot be asked; undefined for a question about the call alone.
 */
export function yesLabel(otherwise: ErrorCode | undefined): string {
  if (otherwise === undefined) return "once";
  const [label] = STORED[otherwise] ?? [];
  return label === undefined ? "yes" : `${label}, and once`;
}

/** Returns a sentence about the effect of a yes, after a blank; an empty text if a yes stores nothing. */
export function storedText({ otherwise }: Pick<Pending, "otherwise">): string {
  const [, sentence] = otherwise === undefined ? [] : STORED[otherwise] ?? [];
  return sentence === undefined ? "" : ` PML then also ${sentence}.`;
}

/** Returns the answers for a waiting call by the present rules, which may differ from earlier ones. */
export async function findOffers(pending: Pending, app: App): Promise<Offers> {
  const { alwaysRules } = await app.callPath();
  const call = callOf(pending, app);
  const { rule, never, sets } = call === undefined
    ? NO_RULES
    : rulesFor(pending, call, alwaysRules);
  const answers = answersOf({ session: rule && pending.session, always: rule, sets, never });
  const reach = call === undefined ? "" : alwaysRules.reachOf(call);
  const reason = rule === undefined ? whyOnce(pending, app) : undefined;
  return { answers, call, rule, never, sets, reach, ...withoutUndefined({ whyOnce: reason }) };
}

/** Returns why no answer to a question can allow later calls. */
function whyOnce({ subjects: [subject, ...more], always }: Pending, app: App): string {
  const { file } = app.loaded();
  if (more.length > 0) return "it is about several calls";
  if (subject !== undefined && subject.actor !== "local") return "an identity made the call";
  if (file !== undefined && !app.config().trusted) {
    return "the workspace file is not trusted (`pml trust`)";
  }
  return always
    ? "no rule can allow exactly this call"
    : "a first use, a changed definition and a call that a policy asks about need an answer each time";
}

/**
 * Applies the user's answer to a waiting call. Throws `APPROVAL_STALE` if the call no longer waits, and
 * `BAD_ARGUMENTS` if this answer is not offered.
 */
export async function giveAnswer(
  pending: Pending,
  reply: OfferedAnswer["reply"],
  { context, offers, channel, keys = [] }: {
    readonly context: CommandContext;
    readonly offers: Offers;
    readonly channel: AnswerChannel;
    /** The keys of `_meta` that the user has just listed in `client_meta`. */
    readonly keys?: readonly string[];
  },
): Promise<AnswerResult> {
  const { id } = pending;
  const { approvals, alwaysRules } = await context.app.callPath();
  const { call, rule, reach, answers } = offers;
  // guard: answer-offered
  if (!answers.some((answer) => answer.reply === reply)) {
    throw new PmlError("BAD_ARGUMENTS", `Cannot answer ${quoted(reply)}: it is not offered now`);
  }
  const about = { id, channel };
  const outdated = await outdatedAnswer(pending, reply, context);
  if (outdated !== undefined) return outdated;
  if (reply === "Yes") return await approveOnce(pending, { context, channel, keys });
  // guard: approval-always
  if (reply === "Always" && call !== undefined) {
    // Grants the call first: this throws if the call no longer waits, so that no rule is written. The
    // client may also repeat the call before its PML has read the new rule.
    await approvals.grant(id);
    await alwaysRules.add(call);
    await recordAction(context, "always", { tool: call.id, channel });
    return approved(`Approved always, by the rule ${rule} ${reach}`);
  }
  if (reply === "Session") {
    // With `true`, the PML process that serves the client keeps the answer until the client disconnects.
    await approvals.grant(id, true);
    await recordAction(context, "session", about);
    return approved("Approved until the client disconnects. Ask it to repeat the call.");
  }
  const set = offers.sets.find((toolSet) => toolSet.reply === reply);
  if (set !== undefined) {
    const tools = set.tools.map((tool) => tool.id);
    await approvals.grant(id);
    await alwaysRules.addTools(set.tools);
    await approvals.markRead(unreadIn(set));
    await recordAction(context, "always", { tools, channel });
    return approved(`Approved always, by ${tools.length} rules ${reach}`);
  }
  if (reply === "Never" && call !== undefined) {
    await approvals.refuse(id);
    await alwaysRules.deny(call);
    await recordAction(context, "never", { tool: call.id, channel });
    return { decision: "refused", text: deniedText(call.id, reach) };
  }
  const isRefused = await approvals.refuse(id);
  await recordAction(context, "declined", about);
  return { decision: "refused", text: isRefused ? "Refused." : "Too late: it may have run." };
}

async function approveOnce(
  pending: Pending,
  { context, channel, keys }: {
    readonly context: CommandContext;
    readonly channel: AnswerChannel;
    readonly keys: readonly string[];
  },
): Promise<AnswerResult> {
  const { id } = pending;
  const { approvals } = await context.app.callPath();
  if (keys.length > 0) await approvals.grantWithout(id, keys);
  else await approvals.grant(id);
  // The record of the call names the terminal for every answer outside the client, so an answer on the
  // page needs its own record.
  if (channel === "page") await recordAction(context, "granted", { id, channel });
  return approved(`Approved once. Ask the client to repeat the call.${storedText(pending)}`);
}

/** Adds keys of `_meta` to `client_meta`, so that they pass to every server. Returns the file's path. */
export async function addClientMetaKeys(
  keys: readonly string[],
  context: CommandContext,
  channel: AnswerChannel,
): Promise<string> {
  const value = [...new Set([...context.app.config().clientMeta, ...keys])];
  const path = await setForPerson(context.app, { keys: ["client_meta"], value });
  await recordAction(context, "client_meta", { keys, channel });
  return path;
}

/** Returns a sentence about the rule that "Never" wrote. `reach` names its file. */
export function deniedText(id: ToolId, reach: string): string {
  return `Denied from now on, by the rule ${id} ${reach}. ` +
    `\`pml rules remove ${shellWord(id)}\` removes it`;
}

/** Returns a sentence with the tools for which the answer about a set writes rules. */
export function toolSetNames({ reply, tools }: ToolSet): string {
  const names = tools.map(({ id, note }) =>
    `${quoted(splitToolId(id).tool, 200)}${note === undefined ? "" : ` (${note})`}`
  );
  const which = reply === "Reads" ? "tools that read" : "tools";
  return `"${tools.length} ${which}" writes a rule for each of: ${names.join(", ")}`;
}

function approved(text: string): AnswerResult {
  return { decision: "approved", text };
}

/**
 * Returns the result of an answer that approves nothing, because PML would now ask another question
 * about the call; undefined if the answer can count.
 */
async function outdatedAnswer(
  pending: Pending,
  reply: OfferedAnswer["reply"],
  { app }: CommandContext,
): Promise<AnswerResult | undefined> {
  if (reply === "No" || reply === "Never") return undefined;
  // Files and trust may have changed before the user answered.
  await app.policy.reload();
  const { isCurrent, next } = await (await app.callPath()).checkWaiting(pending);
  if (isCurrent) return undefined;
  const why =
    "Not approved: since the call was made, its rules, the trust in its file or the code " +
    "of its server changed.";
  return next === undefined
    ? { decision: "outdated", text: `${why} Ask the client to repeat the call.` }
    : { decision: "outdated", text: `${why} Answer the present question.`, next };
}

const NO_RULES = { rule: undefined, never: undefined, sets: [] };

/** Returns the rules that answers may add now. The rules may have changed since the question. */
function rulesFor(
  pending: Pending,
  call: { readonly id: ToolId; readonly arguments: Call["arguments"] },
  alwaysRules: CallPath["alwaysRules"],
): Pick<Offers, "rule" | "never" | "sets"> {
  const { members } = pending.subjects[0] ?? {};
  const rule = pending.always
    ? alwaysRules.offeredRule({ ...call, ...withoutUndefined({ members }) })
    : undefined;
  return {
    rule,
    never: pending.never === true ? alwaysRules.denialOf(call) : undefined,
    sets: rule === call.id ? writableSets(pending, alwaysRules) : [],
  };
}

/** Returns the sets of a question whose rules would have an effect now. */
function writableSets(
  { sets = [] }: Pending,
  alwaysRules: CallPath["alwaysRules"],
): readonly ToolSet[] {
  return sets.filter(({ tools }) =>
    tools.every(({ id }) => alwaysRules.offeredRule({ id, arguments: {} }) === id)
  );
}

/** Returns the call of a question if an answer can add a rule for it; otherwise undefined. */
function callOf({ subjects: [subject, ...more] }: Pending, app: App) {
  if (subject === undefined || more.length > 0) return undefined;
  const { tool: id, arguments: args, actor, workspace } = subject;
  // "Always" is written to the file of this workspace, for all clients.
  const isHere = actor === "local" && workspace === app.config().workspace;
  // guard: always-elsewhere
  return isHere ? { id, arguments: args } : undefined;
}

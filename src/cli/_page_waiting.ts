/**
 * The calls that wait in the PML home, as the page shows and answers them.
 *
 * @module
 */

import type { AnswerRequest, Done, OfferedReply, Waiting } from "../control/api.ts";
import { approvalReplyOf, offeredReplies } from "../control/replies.ts";
import { PmlError } from "../core/errors.ts";
import { sha256 } from "../core/hash.ts";
import { quoted, withoutUndefined } from "../core/json.ts";
import { splitToolId } from "../core/tool_id.ts";
import { SOONEST_ANSWER, toolSetText } from "../policy/approvals.ts";
import { type ToolSet, unreadIn } from "../policy/tool_set.ts";
import { wordNeededError } from "../page/failure.ts";
import {
  findOffers,
  giveAnswer,
  type Offers,
  type Pending,
  storedText,
  toolSetNames,
} from "./_approval_answers.ts";
import type { CommandContext } from "./_command_context.ts";
import type { WorkspaceApps } from "./_workspace_apps.ts";
import { findPending, inWorkspaceOf, waitingEverywhere } from "./_waiting.ts";

/** The word that the user types for an answer whose texts the question does not show. */
const ALLOW_WORD = "allow";

/** Returns the calls that wait, of all workspaces, the oldest first. */
export async function waitingRows(apps: WorkspaceApps): Promise<readonly Waiting[]> {
  return await Promise.all(
    (await waitingEverywhere(apps)).map(({ pending }) =>
      inWorkspaceOf(
        pending,
        apps,
        async (context) => rowOf(pending, await offersIn(pending, context)),
      )
    ),
  );
}

/** Answers a call that waits. */
export async function answerWaiting(apps: WorkspaceApps, request: AnswerRequest): Promise<Done> {
  const [id = ""] = request.id.split(".");
  const pending = (await findPending({ app: apps.here })).find((one) => one.id === id);
  if (pending === undefined) return { done: false, text: "It was answered, or has expired" };
  // guard: page-too-soon
  if (Date.now() - pending.asked < SOONEST_ANSWER) {
    return { done: false, text: "Too soon: read the question first" };
  }
  return await inWorkspaceOf(pending, apps, (context) => answerIn(context, pending, request));
}

async function answerIn(
  context: CommandContext,
  pending: Pending,
  { id: shownId, reply, word }: AnswerRequest,
): Promise<Done> {
  const [, version] = shownId.split(".");
  const offers = await offersIn(pending, context);
  const answer = approvalReplyOf(reply) ?? "No";
  // A repeated call may have changed the question: one answer may now cover other tools.
  // guard: page-shown
  if (answer !== "No" && version !== versionOf(pending, offers)) {
    return { done: false, text: "The question has changed: read it again" };
  }
  const set = offers.sets.find((one) => one.reply === answer);
  // In place of this word, a terminal shows the texts and asks again.
  // guard: page-set-unread
  if (set !== undefined && unreadIn(set).length > 0 && word !== ALLOW_WORD) {
    throw wordNeededError(ALLOW_WORD, `allow these ${set.tools.length} tools`);
  }
  try {
    const { text, decision } = await giveAnswer(pending, answer, {
      context,
      offers,
      channel: "page",
    });
    return { done: decision !== "outdated", text };
  } catch (error) {
    const isLate = error instanceof PmlError && error.code === "APPROVAL_STALE";
    if (!isLate) throw error;
    return { done: false, text: `Too late: ${error.hint ?? error.message}` };
  }
}

/** Returns the answers to a call. With a broken configuration, the user can only refuse it. */
async function offersIn(pending: Pending, { app }: CommandContext): Promise<Offers> {
  const offers = await findOffers(pending, app);
  if (app.config().problem === undefined) return offers;
  return { ...offers, answers: offers.answers.filter(({ reply }) => reply === "No") };
}

function rowOf(pending: Pending, offers: Offers): Waiting {
  const { text, asked, expires, subjects: [subject] } = pending;
  const { server, tool } = subject === undefined
    ? { server: "", tool: "" }
    : splitToolId(subject.tool);
  const { actor = "local", workspace = "" } = subject ?? {};
  return {
    id: `${pending.id}.${versionOf(pending, offers)}`,
    where: "home",
    workspace,
    server,
    tool,
    ...actor !== "local" && { identity: actor },
    text,
    askedAt: asked,
    expires,
    replies: repliesOf(pending, offers),
    ...withoutUndefined({ whyOnce: offers.whyOnce }),
  };
}

/**
 * Returns a hash of everything that the page shows about a question. The id of the question contains
 * it, so that an answer counts only for exactly the text and the answers that the user saw.
 */
function versionOf(pending: Pending, offers: Offers): string {
  return sha256(JSON.stringify([pending.text, repliesOf(pending, offers)]));
}

/** Returns the answers with their effects, and with the word that the user types for some of them. */
function repliesOf(
  pending: Pending,
  { answers, rule, never, sets, reach }: Offers,
): readonly OfferedReply[] {
  const setEffects = sets.map((set): readonly [ToolSet["reply"], string] => {
    const texts = unreadIn(set).length > 0 ? [toolSetText(set)] : [];
    return [set.reply, [toolSetNames(set), ...texts, `Written ${reach}`].join("\n")];
  });
  const stored = storedText(pending);
  const effects = {
    Always: `Writes the rule ${quoted(rule ?? "", Infinity)} ${reach}`,
    Never: `Writes the deny rule ${quoted(never ?? "", Infinity)} ${reach}`,
    Yes: `This call runs once, when the client repeats it${stored && `.${stored}`}`,
    Session: "Until the client disconnects, for at most 12 hours",
    No: "Nothing runs, and no rule is written",
    ...Object.fromEntries(setEffects),
  };
  return offeredReplies(answers, effects).map((offered) => {
    const answerReply = approvalReplyOf(offered.reply);
    const set = sets.find((one) => one.reply === answerReply);
    return set === undefined || unreadIn(set).length === 0
      ? offered
      : { ...offered, word: ALLOW_WORD };
  });
}

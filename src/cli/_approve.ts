/**
 * `pml approve`: shows the calls that wait, with everything that an approval covers, and asks the
 * user.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { quoted, visible, withoutUndefined } from "../core/json.ts";
import { toolSetText } from "../policy/approvals.ts";
import {
  addClientMetaKeys,
  findOffers,
  giveAnswer,
  type Pending,
  toolSetNames,
  yesLabel,
} from "./_approval_answers.ts";
import type { CommandContext, CommandInput, CommandOutput } from "./_command_context.ts";
import { WorkspaceApps } from "./_workspace_apps.ts";
import { afterDone, agrees, askReply, assertTerminal } from "./_terminal.ts";
import { inWorkspaceOf, type WaitingCall, waitingEverywhere } from "./_waiting.ts";
import { tell } from "./out.ts";

/** Shows the calls that wait for approval, and asks about each of them. */
export async function approve(
  context: CommandContext,
  { words: [id = ""], json, watch }: CommandInput,
): Promise<CommandOutput> {
  if (watch) {
    const { watchApprovals } = await import("./_approve_watch.ts");
    return await watchApprovals(context, { id, isJson: json === true });
  }
  await using apps = new WorkspaceApps(context.app, context.signal);
  const waiting = (await waitingEverywhere(apps))
    .filter(({ pending }) => pending.id.startsWith(id));
  if (id !== "" && waiting.length !== 1) {
    const reason = `${waiting.length} waiting calls have an id that begins like this`;
    throw new PmlError("APPROVAL_STALE", `Cannot approve ${quoted(id)}: ${reason}`, {
      hint: "`pml approve --json` lists waiting calls; make an expired call again",
    });
  }
  const calls = waiting.map(callValue);
  if (json) return { value: { calls } };
  if (waiting.length === 0) return { value: { calls }, text: "No call waits for your approval" };
  assertTerminal("Cannot approve a call");
  let code = 0;
  for (const each of waiting) {
    // An answer about an earlier call may have settled this one.
    const now = await waitingEverywhere(apps);
    if (!now.some(({ pending }) => pending.id === each.pending.id)) continue;
    if (await decide(each, context, apps) === "left") code = 1;
  }
  return { value: { calls }, text: "", code };
}

/** Returns a waiting call as JSON output contains it. */
export function callValue({ pending: { id, text, asked, expires }, unchecked }: WaitingCall) {
  return {
    id,
    text,
    asked: new Date(asked),
    expires: new Date(expires),
    ...withoutUndefined({ unchecked }),
  };
}

/**
 * Asks about one waiting call. The PML of the call's workspace checks the answer. Returns "left" if
 * the user stops; the call then still waits.
 */
export async function decide(
  { pending, unchecked }: WaitingCall,
  context: CommandContext,
  apps: WorkspaceApps,
): Promise<"approved" | "refused" | "left"> {
  const { app, signal } = context;
  if (signal.aborted) return "left";
  const { id, text, expires } = pending;
  const offers = await findOffers(pending, app);
  const { answers, rule, sets, reach } = offers;
  tell(`${text}\nThe id of this call: ${id}\n`);
  if (unchecked !== undefined) {
    tell(
      `PML cannot check whether the rules still ask about this call: ${visible(unchecked, 400)}\n`,
    );
  }
  if (rule !== undefined) tell(`"always" writes the rule ${rule} ${reach}`);
  for (const set of sets) tell(toolSetNames(set));
  if (rule !== undefined) tell("");
  const until = new Date(expires).toTimeString().slice(0, 5);
  const pendingText = ` Still pending, expires ${until}.`;
  const reply = await askReply("Approve exactly this call?", {
    yes: yesLabel(pending.otherwise),
    answers,
    pending: pendingText,
    show: (several) => {
      for (const set of sets) if (set.reply === several) tell(toolSetText(set));
    },
    signal,
  });
  if (reply === "cancelled") {
    tell(`Not answered.${pendingText}`);
    return "left";
  }
  const unanswered = [`Not answered.${pendingText}`];
  const keys = reply !== "Yes"
    ? []
    : await afterDone(signal, unanswered, () => offerKeys(pending, context));
  const answer = await inWorkspaceOf(
    pending,
    apps,
    (workspaceContext) =>
      giveAnswer(pending, reply, { context: workspaceContext, offers, channel: "terminal", keys }),
  );
  tell(answer.text);
  if (answer.decision !== "outdated") return answer.decision;
  return answer.next === undefined ? "left" : await decide({ pending: answer.next }, context, apps);
}

/**
 * Offers to list keys of `_meta` in `client_meta`: the keys that are the only difference between the
 * call and an earlier one. Returns the keys that the user agreed to list.
 */
async function offerKeys(pending: Pending, context: CommandContext): Promise<readonly string[]> {
  const { app, signal } = context;
  const keys = (await app.callPath()).approvals.listableKeys(pending);
  if (keys.length === 0) return [];
  const names = keys.map((key) => JSON.stringify(key)).join(", ");
  const question = `Let ${names} pass to every server without being shown from now on?`;
  if (!await agrees(question, { signal })) return [];
  tell(`Added to client_meta in ${await addClientMetaKeys(keys, context, "terminal")}`);
  return keys;
}

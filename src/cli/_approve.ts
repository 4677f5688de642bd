/**
 * `pml approve`: shows the calls that wait, with everything that an approval covers, and asks the
 * user.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { PmlError } from "../core/errors.ts";
import { defined, quoted } from "../core/json.ts";
import { type CommandContext, recordAction, type Shown, type Typed } from "./_command_context.ts";
import { setForPerson } from "./_config_file.ts";
import { askReply, needPerson } from "./_terminal.ts";
import { tell } from "./out.ts";

type Approvals = Awaited<ReturnType<App["callPath"]>>["approvals"];
type Pending = Awaited<ReturnType<Approvals["pendingApprovals"]>>[number];

/** Shows the calls that wait for approval, and asks about each of them. */
export async function approve(
  at: CommandContext,
  { words: [id = ""], json, watch }: Typed,
): Promise<Shown> {
  if (watch) {
    const { watchApprovals } = await import("./_approve_watch.ts");
    return await watchApprovals(at, { id, isJson: json === true });
  }
  const waiting = (await (await at.app.callPath()).approvals.pendingApprovals())
    .filter((each) => each.id.startsWith(id));
  if (id !== "" && waiting.length !== 1) {
    const reason = `${waiting.length} waiting calls have an id that begins like this`;
    throw new PmlError("APPROVAL_STALE", `Cannot approve ${quoted(id)}: ${reason}`, {
      hint: "`pml approve --json` lists waiting calls; make an expired call again",
    });
  }
  const value = waiting.map(({ id, text, asked, expires }) => ({
    id,
    text,
    asked: new Date(asked),
    expires: new Date(expires),
  }));
  if (json) return { value };
  if (waiting.length === 0) return { value, text: "No call waits for your approval" };
  needPerson("Cannot approve a call");
  let code = 0;
  for (const each of waiting) {
    if (await decide(each, at) === "left") code = 1;
  }
  return { value, text: "", code };
}

/** Asks about one waiting call. The call keeps waiting if the user stops. */
export async function decide(
  pending: Pending,
  at: CommandContext,
): Promise<"approved" | "refused" | "left"> {
  const { app, signal } = at;
  if (signal.aborted) return "left";
  const was = app.config().trusted;
  const { id, text, expires } = pending;
  const { approvals, always } = await app.callPath();
  const call = asLeft(pending, app);
  const { members } = pending.subjects[0] ?? {};
  const rule = call && always.offered({ ...call, ...defined({ members }) });
  tell(`${text}\nThe id of this call: ${id}\n`);
  const written = `the rule ${rule} in ${app.policy.rulesFile}`;
  if (rule !== undefined) tell(`"always" writes ${written}\n`);
  const until = new Date(expires).toTimeString().slice(0, 5);
  const still = ` Still pending, expires ${until}.`;
  const reply = await askReply("Approve exactly this call?", {
    once: true,
    always: rule !== undefined,
    pending: still,
    signal,
  });
  if (reply === "Yes") {
    const keys = await listedKeys(pending, at);
    if (keys.length > 0) await approvals.grantWithout(id, keys);
    else await approvals.grant(id);
    // Files and trust may have changed while the user thought.
    await app.policy.reload();
    const so = app.config().trusted ? "stays" : "is no longer";
    const trust = was ? ` The workspace ${so} trusted.` : "";
    tell(`Approved once. Ask the client to repeat the call.${trust}`);
    return "approved";
  }
  // guard: approval-always
  if (reply === "Always" && call !== undefined) {
    // First, because no rule is written for a question that waits no more. A client may also call
    // again before its PML has read the rule.
    await approvals.grant(id);
    await always.add(call);
    await recordAction(at, "always", { tool: call.id, channel: "terminal" });
    tell(`Approved always, by ${written}`);
    return "approved";
  }
  if (reply === "No") {
    const isRefused = await approvals.refuse(id);
    await recordAction(at, "declined", { id, channel: "terminal" });
    tell(isRefused ? "Refused." : "Too late: it may have run.");
    return "refused";
  }
  tell(`Not answered.${still}`);
  return "left";
}

/**
 * Offers to list the keys of `_meta` in which the call alone differs from an earlier one. Returns
 * the keys that the user listed.
 */
async function listedKeys(pending: Pending, at: CommandContext): Promise<readonly string[]> {
  const { app, signal } = at;
  const keys = (await app.callPath()).approvals.listableKeys(pending);
  if (keys.length === 0) return [];
  const names = keys.map((key) => JSON.stringify(key)).join(", ");
  const question = `Let ${names} pass to every server without being shown from now on?`;
  if (await askReply(question, { signal }) !== "Yes") return [];
  const value = [...new Set([...app.config().clientMeta, ...keys])];
  const path = await setForPerson(app, { keys: ["client_meta"], value });
  await recordAction(at, "client_meta", { keys, channel: "terminal" });
  tell(`Added to client_meta in ${path}`);
  return keys;
}

/** Returns the call of a question of this workspace to which "Always" can be answered. */
function asLeft({ always, subjects: [subject, ...more] }: Pending, app: App) {
  if (!always || subject === undefined || more.length > 0) return undefined;
  const { tool: id, arguments: args, actor, workspace, rules } = subject;
  // Other rules may have come since, and "Always" is written to the file of this workspace, for
  // everybody.
  const isHere = actor === "local" && workspace === app.config().workspace &&
    rules === app.policy.now.rules();
  // guard: always-elsewhere
  return isHere ? { id, arguments: args } : undefined;
}

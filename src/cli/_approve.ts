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
import { answersOf, toolSetText } from "../policy/approvals.ts";
import { type ToolSet, unreadIn } from "../policy/tool_set.ts";
import type { Call } from "../protocol/call.ts";
import { splitToolId, type ToolId } from "../core/tool_id.ts";
import { askReply, needPerson } from "./_terminal.ts";
import { tell } from "./out.ts";

type CallPath = Awaited<ReturnType<App["callPath"]>>;
type Pending = Awaited<ReturnType<CallPath["waitingCalls"]>>[number];

/** Shows the calls that wait for approval, and asks about each of them. */
export async function approve(
  at: CommandContext,
  { words: [id = ""], json, watch }: Typed,
): Promise<Shown> {
  if (watch) {
    const { watchApprovals } = await import("./_approve_watch.ts");
    return await watchApprovals(at, { id, isJson: json === true });
  }
  const path = await at.app.callPath();
  const waiting = (await path.waitingCalls())
    .filter((each) => each.id.startsWith(id));
  if (id !== "" && waiting.length !== 1) {
    const reason = `${waiting.length} waiting calls have an id that begins like this`;
    throw new PmlError("APPROVAL_STALE", `Cannot approve ${quoted(id)}: ${reason}`, {
      hint: "`pml approve --json` lists waiting calls; make an expired call again",
    });
  }
  const calls = waiting.map(({ id, text, asked, expires }) => ({
    id,
    text,
    asked: new Date(asked),
    expires: new Date(expires),
  }));
  if (json) return { value: { calls } };
  if (waiting.length === 0) return { value: { calls }, text: "No call waits for your approval" };
  needPerson("Cannot approve a call");
  let code = 0;
  for (const each of waiting) {
    // An answer to an earlier one may have settled it.
    if (!(await path.waitingCalls()).some(({ id }) => id === each.id)) continue;
    if (await decide(each, at) === "left") code = 1;
  }
  return { value: { calls }, text: "", code };
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
  const { rule, never, sets } = call === undefined ? NO_RULES : rulesFor(pending, call, always);
  tell(`${text}\nThe id of this call: ${id}\n`);
  const written = `the rule ${rule}${call === undefined ? "" : ` ${always.reach(call)}`}`;
  if (rule !== undefined) tell(`"always" writes ${written}`);
  for (const set of sets) tell(namesOf(set));
  if (rule !== undefined) tell("");
  const until = new Date(expires).toTimeString().slice(0, 5);
  const still = ` Still pending, expires ${until}.`;
  const reply = await askReply("Approve exactly this call?", {
    once: true,
    answers: answersOf({ session: rule && pending.session, always: rule, sets, never }),
    pending: still,
    signal,
  });
  if (reply === "Yes") {
    const keys = await listedKeys(pending, at);
    if (keys.length > 0) await approvals.grantWithout(id, keys);
    else await approvals.grant(id);
    // Files and trust may have changed while the user thought.
    await app.policy.reload();
    const trust = was && !app.config().trusted ? " The workspace is no longer trusted." : "";
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
  if (reply === "Session") return await approveSession(id, at);
  const set = sets.find((one) => one.reply === reply);
  if (set !== undefined) return await decideSet(pending, set, at);
  if (reply === "Never" && call !== undefined) return await deny(id, call, at);
  if (reply === "No") {
    const isRefused = await approvals.refuse(id);
    await recordAction(at, "declined", { id, channel: "terminal" });
    tell(isRefused ? "Refused." : "Too late: it may have run.");
    return "refused";
  }
  tell(`Not answered.${still}`);
  return "left";
}

/** The rules that answers to a question may add. */
interface OfferedRules {
  readonly rule: string | undefined;
  readonly never: string | undefined;
  readonly sets: readonly ToolSet[];
}

const NO_RULES: OfferedRules = { rule: undefined, never: undefined, sets: [] };

/** Returns the rules that answers may add now. Others may have come since the question. */
function rulesFor(
  pending: Pending,
  call: Pick<Call, "id" | "arguments">,
  always: CallPath["always"],
): OfferedRules {
  const { members } = pending.subjects[0] ?? {};
  const rule = pending.always ? always.offered({ ...call, ...defined({ members }) }) : undefined;
  return {
    rule,
    never: pending.never === true ? always.denialOf(call) : undefined,
    sets: rule === call.id ? writableSets(pending, always) : [],
  };
}

/** Approves a waiting call for the session that asked. Its process keeps the answer. */
async function approveSession(id: string, at: CommandContext): Promise<"approved"> {
  await (await at.app.callPath()).approvals.grant(id, true);
  await recordAction(at, "session", { id, channel: "terminal" });
  tell("Approved until the client disconnects. Ask it to repeat the call.");
  return "approved";
}

/** Denies the tool of a waiting call from now on. */
async function deny(
  id: string,
  call: { readonly id: ToolId },
  at: CommandContext,
): Promise<"refused"> {
  const { approvals, always } = await at.app.callPath();
  await approvals.refuse(id);
  await always.deny(call);
  await recordAction(at, "never", { tool: call.id, channel: "terminal" });
  tell(`Denied from now on, by the rule ${call.id} ${always.reach(call)}`);
  return "refused";
}

/**
 * Shows the texts of a set of tools that the user has not read, asks once more if there are any, and
 * writes a rule for each tool.
 */
async function decideSet(
  { id, expires }: Pending,
  set: ToolSet,
  at: CommandContext,
): Promise<"approved" | "left"> {
  const { app, signal } = at;
  const { approvals, always } = await app.callPath();
  const tools = set.tools.map((tool) => tool.id);
  if (unreadIn(set).length > 0) {
    tell(toolSetText(set));
    const question = `Allow these ${tools.length} tools?`;
    // guard: set-unread
    if (await askReply(question, { signal }) !== "Yes") {
      tell(`Not answered. Still pending, expires ${new Date(expires).toTimeString().slice(0, 5)}.`);
      return "left";
    }
  }
  await approvals.grant(id);
  await always.addTools(set.tools);
  await approvals.markRead(unreadIn(set));
  await recordAction(at, "always", { tools, channel: "terminal" });
  const [first] = set.tools;
  const reach = first === undefined ? "" : ` ${always.reach(first)}`;
  tell(`Approved always, by ${tools.length} rules${reach}`);
  return "approved";
}

/** Returns the sets of a question whose rules would have an effect now. */
function writableSets({ sets = [] }: Pending, always: CallPath["always"]): readonly ToolSet[] {
  return sets.filter(({ tools }) =>
    tools.every(({ id }) => always.offered({ id, arguments: {} }) === id)
  );
}

/** Returns a line with the names of the tools of a set. */
function namesOf({ reply, tools }: ToolSet): string {
  const names = tools.map(({ id, note }) =>
    `${quoted(splitToolId(id).tool, 200)}${note === undefined ? "" : ` (${note})`}`
  );
  const which = reply === "Reads" ? "tools that read" : "tools";
  return `"${tools.length} ${which}" writes a rule for each of: ${names.join(", ")}`;
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

/** Returns the call of a question of this workspace to which an answer can add a rule. */
function asLeft({ subjects: [subject, ...more] }: Pending, app: App) {
  if (subject === undefined || more.length > 0) return undefined;
  const { tool: id, arguments: args, actor, workspace, rules } = subject;
  // Other rules may have come since, and "Always" is written to the file of this workspace, for
  // everybody.
  const isHere = actor === "local" && workspace === app.config().workspace &&
    rules === app.policy.now.rules();
  // guard: always-elsewhere
  return isHere ? { id, arguments: args } : undefined;
}

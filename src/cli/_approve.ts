/**
 * `pml trust` and `pml approve`: show everything that an approval covers, and ask the
 * person.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import type { CommandContext, Shown, Typed } from "./_command_context.ts";
import { askReply, needPerson } from "./_terminal.ts";
import { tell } from "./out.ts";

type Approvals = Awaited<ReturnType<App["callPath"]>>["approvals"];
type Pending = Awaited<ReturnType<Approvals["pendingApprovals"]>>[number];
type Untrusted = NonNullable<Awaited<ReturnType<App["policy"]["unapproved"]>>>;

/** Shows what the workspace file and its modules bring, and asks the person to trust it. */
export async function trust({ app, signal }: CommandContext, { json }: Typed): Promise<Shown> {
  const open = await app.policy.unapproved();
  const file = app.loaded().workspace.file ?? null;
  const trusted = open === undefined && file !== null;
  const value = { file, trusted, facts: open?.facts ?? [] };
  if (json) return { value };
  if (open === undefined) {
    return { value, text: trusted ? `Trusted already: ${file}` : "There is no workspace file" };
  }
  needPerson("Cannot trust the workspace file", "pml trust");
  if (await askUntrusted(open, signal)) return { value, text: "Trusted" };
  return { value, text: "Not trusted: nothing was changed", code: 1 };
}

/**
 * Shows what is not approved yet, and stores the approval if the person says yes. Returns whether it
 * was given.
 */
export async function askUntrusted(open: Untrusted, signal: AbortSignal): Promise<boolean> {
  for (const fact of open.facts) tell(fact);
  if (await askReply("Trust exactly this?", { signal }) !== "Yes") return false;
  await open.accept();
  return true;
}

/** Shows the calls that wait for approval, and asks about each of them. */
export async function approve(
  at: CommandContext,
  { words: [id = ""], json }: Typed,
): Promise<Shown> {
  const waiting = (await (await at.app.callPath()).approvals.pendingApprovals())
    .filter((each) => each.id.startsWith(id));
  if (id !== "" && waiting.length !== 1) {
    const said = `${waiting.length} waiting calls have an id that begins like this`;
    throw new PmlError("APPROVAL_STALE", `Cannot approve ${quoted(id)}: ${said}`, {
      hint: "`pml approve --json` lists the waiting calls; an expired call must be made again",
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
  needPerson("Cannot approve a call", "pml approve");
  let code = 0;
  for (const each of waiting) {
    if (await decide(each, at) === "left") code = 1;
  }
  return { value, text: "", code };
}

/**
 * Asks about one waiting call. It waits on if the person stops.
 */
export async function decide(
  { id, text, expires }: Pending,
  { app, signal }: CommandContext,
): Promise<"approved" | "refused" | "left"> {
  if (signal.aborted) return "left";
  tell(`${text}\nThe id of this call: ${id}\n`);
  const until = new Date(expires).toTimeString().slice(0, 5);
  const pending = ` Still pending, expires ${until}.`;
  const reply = await askReply("Approve exactly this call?", { once: true, pending, signal });
  const { approvals } = await app.callPath();
  if (reply === "Yes") {
    await approvals.grant(id);
    tell("Approved once. The workspace stays trusted.");
    return "approved";
  }
  if (reply === "No") {
    await approvals.refuse(id);
    tell("Refused.");
    return "refused";
  }
  tell(`Not answered.${pending}`);
  return "left";
}

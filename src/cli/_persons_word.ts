/**
 * `pml trust` and `pml approve`: shows everything that a yes covers, and asks for a typed word.
 *
 * @module
 */

import type { App } from "../app.ts";
import { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import { type Visit, visit } from "./_house.ts";
import { askWord, needPerson } from "./_terminal.ts";
import { print, printJson, tell } from "./out.ts";

type Pending = Awaited<
  ReturnType<Awaited<ReturnType<App["approvals"]>>["pendingApprovals"]>
>[number];
type Untrusted = NonNullable<Awaited<ReturnType<App["untrusted"]>>>;

const SAID = {
  approved: "Approved: exactly this call now passes once",
  refused: "Refused: it was taken away",
  left: "Neither: it waits until it expires",
};

/** Shows what the workspace file and its modules bring, and asks whether that is trusted. */
export async function trust({ json = false }: { readonly json?: boolean }): Promise<number> {
  return await visit(async ({ app, signal }) => {
    const open = await app.untrusted();
    const file = app.loaded().workspace.file ?? null;
    if (json) {
      printJson({ file, trusted: open === undefined && file !== null, facts: open?.facts ?? [] });
      return 0;
    }
    if (open === undefined) {
      print(file === null ? "There is no workspace file to trust" : `Trusted already: ${file}`);
      return 0;
    }
    needPerson(
      "Cannot trust the workspace file",
      "Run `pml trust` yourself on a terminal; `pml trust --json` only shows what it brings",
    );
    const yes = await askUntrusted(open, signal);
    tell(yes ? "Trusted" : "Not trusted: nothing was changed");
    return yes ? 0 : 1;
  }, { trusting: true });
}

/** Shows what nobody has approved yet of a server, and keeps a yes. */
export async function askUntrusted(open: Untrusted, signal: AbortSignal): Promise<boolean> {
  for (const fact of open.facts) tell(fact);
  const word = await askWord('Type "trust" to trust exactly this', signal);
  if (word !== "trust") return false;
  await open.accept();
  return true;
}

/** Shows the calls that wait for a person, and asks about each of them. */
export async function approve(
  id: string | undefined,
  { json = false }: { readonly json?: boolean },
): Promise<number> {
  return await visit(async ({ app, signal }) => {
    const waiting = chosen(await (await app.approvals()).pendingApprovals(), id);
    if (json) {
      printJson(waiting.map(({ id, text, asked, expires }) => ({
        id,
        text,
        asked: new Date(asked).toISOString(),
        expires: new Date(expires).toISOString(),
      })));
      return 0;
    }
    if (waiting.length === 0) print("Nothing waits for your approval");
    else if (!await askAll(waiting, { app, signal })) return 1;
    return 0;
  });
}

/** Asks about one call that waits: the word approves, `no` takes it away, all else leaves it. */
export async function decide(
  waiting: Pending,
  { app, signal }: Visit,
): Promise<"approved" | "refused" | "left"> {
  tell(`${waiting.text}\nAsked under ${waiting.id}\n`);
  const word = await askWord('Type "approve" to let it run once, or "no" to refuse it', signal);
  switch (word) {
    case "approve":
      await (await app.approvals()).grant(waiting.id);
      return "approved";
    case "no":
      await (await app.approvals()).refuse(waiting.id);
      return "refused";
    default:
      return "left";
  }
}

async function askAll(waiting: readonly Pending[], at: Visit): Promise<boolean> {
  needPerson(
    "Cannot approve a call",
    "Run `pml approve` yourself on a terminal; `pml approve --json` only lists what waits",
  );
  const decided = [];
  for (const each of waiting) {
    const decision = await decide(each, at);
    tell(SAID[decision]);
    decided.push(decision);
    if (at.signal.aborted) break;
  }
  return !decided.includes("left");
}

function chosen(waiting: readonly Pending[], id: string | undefined): readonly Pending[] {
  if (id === undefined) return waiting;
  const found = waiting.filter((each) => each.id.startsWith(id));
  if (found.length === 1) return found;
  const said = found.length === 0 ? "nothing waits under it" : "several begin like this";
  throw new PmlError("APPROVAL_STALE", `Cannot approve ${quoted(id)}: ${said}`, {
    hint: "`pml approve --json` lists what waits; what expired has to be called again",
  });
}

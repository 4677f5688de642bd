/**
 * `pml approve --watch`: stays open, and shows each call that begins to wait for the user's approval.
 *
 * @module
 */

import { messageOf, PmlError } from "../core/errors.ts";
import type { PendingApproval } from "../policy/approvals.ts";
import { pause } from "../io/waiting.ts";
import { decide } from "./_approve.ts";
import type { CommandContext, Shown } from "./_command_context.ts";
import { usage } from "./_failure.ts";
import { needPerson } from "./_terminal.ts";
import { print, tell } from "./out.ts";

/** How often the PML home is read, in milliseconds. */
const LOOK_MS = 500;

/**
 * Shows the calls that wait, and each one that comes, until the user stops the command: asks about
 * it, or prints it as a line of JSON.
 */
export async function watchApprovals(
  at: CommandContext,
  { id, isJson }: { readonly id: string; readonly isJson: boolean },
): Promise<Shown> {
  const { app, signal } = at;
  if (id !== "") throw usage("Cannot watch one call", "Leave out the id, or leave out --watch");
  if (!isJson) needPerson("Cannot approve calls", "; `--json` prints each as a line of JSON");
  const path = await app.callPath();
  let shown: ReadonlySet<string> = new Set();
  if (!isJson) tell("Calls that wait for your approval are shown here. Ctrl-C ends this");
  while (!signal.aborted) {
    const waiting = await path.waitingCalls();
    const fresh = waiting.filter((one) => !shown.has(keyOf(one)));
    // A call that no longer waits may be asked about again.
    shown = new Set(waiting.filter((one) => shown.has(keyOf(one))).map(keyOf));
    const [next] = fresh;
    if (next === undefined) {
      await pause(LOOK_MS, signal);
      continue;
    }
    shown = new Set([...shown, keyOf(next)]);
    if (isJson) printLine(next);
    else await answer(next, at);
  }
  return { value: undefined };
}

/** Asks about a call. One that no longer waits, or that cannot be approved, does not end the command. */
async function answer(pending: PendingApproval, at: CommandContext): Promise<void> {
  const { policy } = at.app;
  // The rules may have changed since the command began.
  if (!policy.isCurrent()) await policy.refresh();
  try {
    await decide(pending, at);
  } catch (error) {
    if (!(error instanceof PmlError)) throw error;
    tell(messageOf(error));
  }
}

function printLine({ id, text, asked, expires }: PendingApproval): void {
  const value = { id, text, asked: new Date(asked), expires: new Date(expires) };
  print(JSON.stringify(value));
}

/** Returns the key of a question: the same call may be asked about again later. */
function keyOf({ id, asked }: PendingApproval): string {
  return `${id} ${asked}`;
}

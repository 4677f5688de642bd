/**
 * `pml approve --watch`: runs until the user stops it, and shows each call that begins to wait for
 * approval.
 *
 * @module
 */

import { messageOf, PmlError } from "../core/errors.ts";
import { pause } from "../io/waiting.ts";
import { callValue, decide } from "./_approve.ts";
import type { CommandContext, CommandOutput } from "./_command_context.ts";
import { usage } from "./_failure.ts";
import { WorkspaceApps } from "./_workspace_apps.ts";
import { assertTerminal } from "./_terminal.ts";
import { type WaitingCall, waitingEverywhere } from "./_waiting.ts";
import { print, tell } from "./out.ts";

/** How often the PML home is read, in milliseconds. */
const POLL_MS = 500;

/**
 * Shows each waiting and each new call until the user stops the command: asks about the call, or
 * prints it as a line of JSON.
 */
export async function watchApprovals(
  context: CommandContext,
  { id, isJson }: { readonly id: string; readonly isJson: boolean },
): Promise<CommandOutput> {
  const { app, signal } = context;
  if (id !== "") throw usage("Cannot watch one call", "Leave out the id, or leave out --watch");
  if (!isJson) assertTerminal("Cannot approve calls", "; `--json` prints each as a line of JSON");
  await using apps = new WorkspaceApps(app, signal);
  let shown: ReadonlySet<string> = new Set();
  if (!isJson) tell("Calls that wait for your approval are shown here. Ctrl-C ends this");
  while (!signal.aborted) {
    const waiting = await waitingEverywhere(apps);
    const next = waiting.find((call) => !shown.has(keyOf(call)));
    // A call that no longer waits is forgotten, because it may wait again later.
    shown = new Set(waiting.filter((call) => shown.has(keyOf(call))).map(keyOf));
    if (next === undefined) {
      await pause(POLL_MS, signal);
      continue;
    }
    shown = new Set([...shown, keyOf(next)]);
    if (isJson) print(JSON.stringify(callValue(next)));
    else await askAbout(next, context, apps);
  }
  return { value: undefined };
}

/** Asks about a call. An error, for example because the call no longer waits, does not end the command. */
async function askAbout(
  call: WaitingCall,
  context: CommandContext,
  apps: WorkspaceApps,
): Promise<void> {
  const { policy } = context.app;
  // The rules may have changed since the command began.
  if (!policy.isCurrent()) await policy.refresh();
  try {
    await decide(call, context, apps);
  } catch (error) {
    if (!(error instanceof PmlError)) throw error;
    tell(messageOf(error));
  }
}

/** Returns the key of a question: the same call may be asked about again later. */
function keyOf({ pending: { id, asked } }: WaitingCall): string {
  return `${id} ${asked}`;
}

/**
 * The calls of all workspaces that wait for the user. The PML of each workspace decides whether its
 * calls still wait, by its present rules and trust.
 *
 * @module
 */

import { asPmlError } from "../core/errors.ts";
import { quoted, withoutUndefined } from "../core/json.ts";
import type { Pending } from "./_approval_answers.ts";
import type { CommandContext } from "./_command_context.ts";
import type { WorkspaceApps } from "./_workspace_apps.ts";

/** A call that waits. */
export interface WaitingCall {
  readonly pending: Pending;
  /** Why PML cannot tell whether the rules or the trust have changed since; undefined if it can. */
  readonly unchecked?: string;
}

/**
 * Acts in the workspace of a call. `unchecked` is set if the action runs in another workspace: the
 * reason why.
 */
type WorkspaceAction<T> = (context: CommandContext, unchecked: string | undefined) => Promise<T>;

/** Returns the calls that wait, of all workspaces, the oldest first. */
export async function waitingEverywhere(apps: WorkspaceApps): Promise<readonly WaitingCall[]> {
  const pending = await findPending({ app: apps.here });
  const calls = await Promise.all(
    pending.map((one) =>
      inWorkspaceOf(one, apps, async (context, whyNotThere) => {
        // By now, the rules of the workspace may have decided about the call.
        const waits = context.app === apps.here ||
          (await findPending(context)).some(({ id }) => id === one.id);
        const unchecked = whyNotThere ?? whyUnchecked(one, context);
        return waits ? { pending: one, ...withoutUndefined({ unchecked }) } : undefined;
      })
    ),
  );
  return calls.filter((call) => call !== undefined);
}

/** Acts in the workspace of a call, or in the present one if PML cannot open that workspace. */
export async function inWorkspaceOf<T>(
  { subjects }: Pending,
  apps: WorkspaceApps,
  act: WorkspaceAction<T>,
): Promise<T> {
  const { workspace = "" } = subjects[0] ?? {};
  let hasBegun = false;
  const actOnce = (context: CommandContext) => {
    hasBegun = true;
    return act(context, undefined);
  };
  try {
    return await apps.use(workspace, actOnce);
  } catch (error) {
    if (hasBegun) throw error;
    const { message } = asPmlError(error);
    return await apps.use(apps.here.config().workspace, (context) => act(context, message));
  }
}

/**
 * Returns the calls that wait, of all workspaces, without the calls of this workspace about which its
 * present rules decide.
 */
export async function findPending(
  { app }: Pick<CommandContext, "app">,
): Promise<readonly Pending[]> {
  const callPath = await app.callPath();
  // A broken configuration has no rules that decide, so all calls keep waiting.
  if (app.config().problem !== undefined) return await callPath.approvals.pendingApprovals();
  return await callPath.waitingCalls();
}

/** Returns why the PML of a call's workspace does not decide about the call. */
function whyUnchecked({ subjects }: Pending, { app }: CommandContext): string | undefined {
  const identity = subjects.find(({ actor }) => actor !== "local")?.actor;
  if (identity !== undefined) {
    return `the identity ${quoted(identity)} made it, and \`pml approve\` applies your own rules`;
  }
  return app.config().problem?.message;
}

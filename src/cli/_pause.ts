/**
 * `pml pause` and `pml resume`: refuse every new call in a workspace, and allow calls again.
 *
 * @module
 */

import { type Pause, pause as pauseWorkspace, resume as resumeWorkspace } from "../config/pause.ts";
import { quoted } from "../core/json.ts";
import type { AnswerChannel } from "./_approval_answers.ts";
import {
  type CommandContext,
  type CommandInput,
  type CommandOutput,
  recordAction,
} from "./_command_context.ts";
import { assertTerminal } from "./_terminal.ts";

/** Pauses the workspace. Calls that run go on. */
export async function pause(context: CommandContext): Promise<CommandOutput> {
  const { pause, text } = await beginPause(context, "terminal");
  return {
    value: valueOf(context.app.policy.root, pause),
    text: `${text}\n\`pml resume\` ends the pause`,
  };
}

/** Pauses a workspace, and returns the pause with a sentence for the user. */
export async function beginPause(
  context: CommandContext,
  channel: AnswerChannel,
): Promise<{ readonly pause: Pause; readonly text: string }> {
  const { home, root } = context.app.policy;
  const wasPaused = context.app.config().pause !== undefined;
  const pause = await pauseWorkspace(home, root, channel);
  if (!wasPaused) await recordAction(context, "paused", { workspace: root, channel });
  const text = `Paused: PML refuses every new call in ${quoted(root, 400)}, for all clients. ` +
    "Calls that run go on.";
  return { pause, text };
}

/** Ends the pause of a workspace, and returns a sentence for the user. */
export async function endPause(context: CommandContext, channel: AnswerChannel): Promise<string> {
  const { home, root } = context.app.policy;
  const wasPaused = await resumeWorkspace(home, root);
  if (wasPaused) await recordAction(context, "resumed", { workspace: root, channel });
  return wasPaused
    ? `PML takes calls in ${quoted(root, 400)} again`
    : `${quoted(root, 400)} was not paused`;
}

/** Ends the pause of the workspace. With `--json` it only shows whether the workspace is paused. */
export async function resume(
  context: CommandContext,
  { json }: CommandInput,
): Promise<CommandOutput> {
  const { root } = context.app.policy;
  const { pause } = context.app.config();
  if (json) return { value: valueOf(root, pause) };
  // guard: resume-person
  assertTerminal("Cannot end the pause");
  return { value: valueOf(root, undefined), text: await endPause(context, "terminal") };
}

/** Returns the pause of a workspace as `pml` and `pml doctor` show it. */
export function pauseText({ since, by }: Pause): string {
  const start = since === 0 ? "" : `since ${new Date(since).toLocaleString("sv")}, `;
  return `${start}${
    by === "page" ? "from the page" : "from a terminal"
  }: every new call is refused`;
}

function valueOf(workspace: string, pause: Pause | undefined) {
  const { since = 0 } = pause ?? {};
  return {
    ...{ workspace, paused: pause !== undefined },
    ...since > 0 && { since: new Date(since).toISOString() },
  };
}

/**
 * Servers of the user's own file that run files of the workspace. The user's file applies in every
 * workspace, also in a clone of another author's code, so such servers start only in a trusted
 * workspace.
 *
 * @module
 */

import type { ServerDefinition } from "./kind.ts";
import { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import type { Policy } from "../policy/policy.ts";
import { programOf } from "./kinds.ts";
import { runsWorkspaceFiles } from "./stdio/workspace_files.ts";

/**
 * Returns why a server of the user's file must not start in this workspace; undefined if it may.
 */
export function whyUntrusted(
  definition: ServerDefinition,
  { now }: Pick<Policy, "now">,
): string | undefined {
  const { config: { trusted, workspace }, loaded: { userConfig } } = now;
  if (trusted || !userConfig.servers.includes(definition)) return undefined;
  const program = programOf(definition);
  return program !== undefined && runsWorkspaceFiles(program)
    ? `it runs files of the workspace ${quoted(workspace, 400)}, which is not trusted`
    : undefined;
}

/** Throws `WORKSPACE_UNTRUSTED` if a server must not start in this workspace. */
export function assertTrusted(definition: ServerDefinition, policy: Pick<Policy, "now">): void {
  const why = whyUntrusted(definition, policy);
  if (why === undefined) return;
  const { file, workspace: { root } } = policy.now.loaded;
  throw new PmlError("WORKSPACE_UNTRUSTED", `Cannot start ${quoted(definition.name)}: ${why}`, {
    hint: file === undefined
      ? `Define it in ${quoted(`${root}/.pml.json`, 400)}: \`pml import CLIENT --workspace\``
      : "Run `pml trust`",
  });
}

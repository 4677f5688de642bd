/**
 * Describes the changes of modules since the user approved their code, and modules whose code the
 * user never approved: the tools, their definitions and their permissions.
 *
 * @module
 */

import { join } from "node:path";
import { pathExists } from "../config/workspace.ts";
import { asPmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import { unlessAborted } from "../io/waiting.ts";
import { definitionChanges } from "../policy/definition_changes.ts";
import { accessOf } from "../policy/grants.ts";
import { permissionLines } from "../policy/permission_lines.ts";
import type { ChangedCode } from "../policy/server_identity.ts";
import { escapeInvisible } from "../policy/trust_subject.ts";
import type { ModuleTool } from "../protocol/tool.ts";
import type { CommandContext } from "./_command_context.ts";
import { shellWord } from "./_shell_word.ts";

/** The changes of one module, with the lines that describe them. */
export interface CodeChange {
  readonly server: string;
  readonly path: string;
  /** The hash of the approved code; undefined if no code was approved. */
  readonly was: string | undefined;
  /** The hash of the present code. */
  readonly is: string;
  readonly lines: readonly string[];
}

/** The tools of two versions of a module. */
interface ToolVersions {
  /** Whether any code of the module was approved. */
  readonly wasApproved: boolean;
  /** The tools of the approved code; undefined if PML does not have them. */
  readonly before: readonly ModuleTool[] | undefined;
  /** The tools of the present code. */
  readonly now: readonly ModuleTool[];
  /** Returns sentences about the permissions of a tool. */
  readonly permissionsOf: (tool: ModuleTool) => readonly string[];
}

/**
 * Describes the changes of modules. Reads the present tools in a child without grants, as
 * `pml check` does. The earlier tools are those that PML read from the approved code.
 */
export async function codeChanges(
  context: CommandContext,
  changed: readonly ChangedCode[],
): Promise<readonly CodeChange[]> {
  const changes: CodeChange[] = [];
  for (const module of changed) {
    const { name: server, path, approved: was, integrity: is } = module;
    const title = was === undefined
      ? `${quoted(server)}, of which you have approved no code (+ new):`
      : `${quoted(server)}, compared with the code that you approved (+ new, - gone):`;
    const lines = [
      title,
      ...[...await toolLines(context, module), codeHint(context, module)].map((line) =>
        `  ${line}`
      ),
    ];
    changes.push({ server, path, was, is, lines: lines.map(escapeInvisible) });
  }
  return changes;
}

async function toolLines(
  { app, signal }: CommandContext,
  { name, path, integrity, approved }: ChangedCode,
): Promise<readonly string[]> {
  const modules = await (await app.callPath()).machine.modules();
  const { workspace, trusted, grants: effective } = app.config();
  // The grants of an untrusted file apply once the user trusts it.
  const grants = (trusted ? effective : app.loaded().file?.sections.grants)?.[name];
  const source = { kind: "file", name, path } as const;
  try {
    // The code is not approved. It is only inspected, and exactly the code with this hash is read.
    const use = { source, expectedHash: integrity, grants: undefined };
    const { meta } = await unlessAborted(modules.load(use), signal);
    return changeLines({
      wasApproved: approved !== undefined,
      before: approved === undefined ? undefined : modules.cachedMeta(approved, path)?.tools,
      now: meta.tools,
      permissionsOf: ({ permissions }) =>
        permissionLines(permissions, accessOf(permissions, { workspace, grants }), workspace),
    });
  } catch (error) {
    signal.throwIfAborted();
    return [`its tools cannot be read: ${asPmlError(error).message}`];
  }
}

/** Returns lines for the tools that are new, gone or changed. */
function changeLines(
  { wasApproved, before, now, permissionsOf }: ToolVersions,
): readonly string[] {
  const find = (tools: readonly ModuleTool[], { definition: { name } }: ModuleTool) =>
    tools.find(({ definition }) => definition.name === name);
  const earlier = before ?? [];
  const lines = [
    ...now.filter((tool) => find(earlier, tool) === undefined)
      .flatMap((tool) => newLines(tool, permissionsOf)),
    ...earlier.filter((tool) => find(now, tool) === undefined)
      .map(({ definition: { name } }) => `- the tool ${quoted(name)}`),
    ...now.flatMap((tool) => {
      const was = find(earlier, tool);
      return was === undefined ? [] : changedToolLines(was, tool, permissionsOf);
    }),
  ];
  if (!wasApproved) return lines;
  if (before === undefined) {
    return ["PML no longer has the tools of the approved code. All present tools:", ...lines];
  }
  return lines.length === 0 ? ["its tools and their permissions are the same"] : lines;
}

function newLines(
  tool: ModuleTool,
  permissionsOf: ToolVersions["permissionsOf"],
): readonly string[] {
  const { definition } = tool;
  const empty = { name: definition.name, inputSchema: {} };
  return [
    `+ the tool ${quoted(definition.name)}:`,
    ...definitionChanges(empty, definition).map((line) => `  + ${line}`),
    ...permissionsOf(tool).map((line) => `  + it ${line}`),
  ];
}

function changedToolLines(
  was: ModuleTool,
  is: ModuleTool,
  permissionsOf: ToolVersions["permissionsOf"],
): readonly string[] {
  const [before, now] = [permissionsOf(was), permissionsOf(is)];
  const lines = [
    ...definitionChanges(was.definition, is.definition),
    ...now.filter((line) => !before.includes(line)).map((line) => `+ it ${line}`),
    ...before.filter((line) => !now.includes(line)).map((line) => `- it ${line}`),
  ];
  if (lines.length === 0) return [];
  return [
    `the tool ${quoted(is.definition.name)} changed:`,
    ...lines.map((line) => `  ${line}`),
  ];
}

/** Returns how the user can look at the code, whose earlier version PML does not keep. */
function codeHint({ app }: CommandContext, { path, approved }: ChangedCode): string {
  const word = shellWord(path);
  if (approved === undefined) return `look at the code in ${word}`;
  const how = pathExists(join(app.policy.root, ".git"))
    ? `\`git diff -- ${word}\` shows changes after the last commit, \`git log -p -- ${word}\` ` +
      "committed ones"
    : `look at ${word}`;
  return `PML keeps no earlier code: ${how}`;
}

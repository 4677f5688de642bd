/**
 * `pml import --undo`: finds the last import into a file, the moves of its servers, and the rules that
 * an undo keeps.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import type { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import { serverSlug } from "../core/tool_id.ts";
import { findWholeUndo } from "./_whole_undo.ts";
import { usage } from "./_failure.ts";
import {
  type FileUndo,
  findTarget,
  isWorkspaceFile,
  lastEditIndex,
  type MovedServer,
  readEdits,
  type TargetFile,
} from "./_undoable_edits.ts";
import { undoableMoves } from "./_import_move.ts";
import { readRules } from "./_rules.ts";

/** The undo of an import: the edits to revert, and facts for the user before the question. */
export interface ImportUndo {
  readonly undos: readonly FileUndo[];
  readonly facts: readonly string[];
  /** The servers of the import. */
  readonly servers: readonly string[];
  /** The rules that an undo keeps, each as `LIST RULE`. */
  readonly rules: readonly string[];
}

/**
 * Returns the undo of the last import into a file, with the moves of its servers. If no import can be
 * undone, returns the undo of moves that belong to no import.
 */
export async function findImportUndo(app: App, target: TargetFile): Promise<ImportUndo> {
  const index = lastEditIndex(app, target.path, "import");
  const isImport = index >= 0;
  const [last, ...later] = isImport ? readEdits(app, target.path).slice(index) : [];
  const { added, from = [], denied = [], doubles = [] } = last ?? {};
  const addedNames = new Set(added?.map(serverSlug));
  // Earlier versions did not record the names, so only the whole file can be restored.
  const changed = later.flatMap(({ replaced }) => replaced === undefined ? [] : [replaced.name])
    .find((name) => added === undefined || addedNames.has(serverSlug(name)));
  if (changed !== undefined) {
    const option = isWorkspaceFile(target.path) ? " --workspace" : "";
    throw usage(
      `Cannot undo: \`pml add --replace\` changed ${quoted(changed)} after the import`,
      `\`pml add --undo${option}\` reverts that one first`,
    );
  }
  const names = new Set([...addedNames, ...doubles]);
  const others = isImport ? [] : await allImports(app);
  // Another import into PML's other file may have taken out servers of the same names.
  const isOwn = ({ name, file }: MovedServer) => {
    const isAt = (path: string) => file === undefined || file === path;
    return isImport
      ? isAt(target.path) && (added === undefined || names.has(name))
      : !others.some((each) => isAt(each.path) && each.names.has(name));
  };
  const moves = await undoableMoves(app, isOwn, from);
  if (!isImport && moves.length > 0) return { undos: moves, facts: [], servers: [], rules: [] };
  if (!isImport) throw await noImportError(app, target);
  const undos = [await findWholeUndo(app, target, { index }), ...moves];
  const shown = (added ?? []).map((name) => app.parts.redactor.redact(quoted(name))).join(", ");
  const source = from.length === 0 ? "" : ` from ${from.join(", ")}`;
  const facts = added === undefined ? [] : [`This undoes the import of ${shown}${source}`];
  const servers = [...addedNames];
  const rules = await keptRules(app, servers, denied);
  return { undos, facts: [...facts, ...ruleLines(rules)], servers, rules };
}

/** Returns the error for a file into which no import wrote. Its hint names an undo that is possible. */
async function noImportError(app: App, { path }: TargetFile): Promise<PmlError> {
  const [own, workspace] = [await findTarget(app, false), await findTarget(app, true)];
  const [other, option] = path === own.path ? [workspace, " --workspace"] : [own, ""];
  const hint = lastEditIndex(app, other.path, "import") >= 0
    ? `\`pml import --undo${option}\` undoes the last import into ${other.path}`
    : "There is none into another file, either. `pml doctor` names the servers of your clients";
  return usage(`Cannot undo: there is no import into ${path} to undo`, hint);
}

/** Returns the names of the servers of all imports that can be undone, for each of PML's files. */
async function allImports(app: App) {
  const targets = [await findTarget(app, false), await findTarget(app, true)];
  return targets.map(({ path }) => {
    const names = readEdits(app, path)
      .flatMap(({ added = [], doubles = [] }) => [...added.map(serverSlug), ...doubles]);
    return { path, names: new Set(names) };
  });
}

/** Returns the rules that an undo keeps: for its servers, and the denied built-in ones. */
async function keptRules(
  app: App,
  servers: readonly string[],
  denied: readonly string[],
): Promise<readonly string[]> {
  const serverRules = (await Promise.all(servers.map((name) => readRules(app, name)))).flat();
  const builtinRules = (await Promise.all(denied.map((name) => readRules(app, name)))).flat()
    .filter((rule) => denied.some((name) => rule === `deny ${name}:*`));
  return [...new Set([...serverRules, ...builtinRules])];
}

function ruleLines(rules: readonly string[]): readonly string[] {
  return rules.length === 0 ? [] : [
    "There are rules for these servers. If they stay, they also apply to later servers of these names:",
    ...rules.map((rule) => `  ${rule}`),
  ];
}

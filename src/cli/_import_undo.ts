/**
 * `pml import --undo`: finds the last import of a file, the moves of its servers, and the rules that
 * stay.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { quoted } from "../core/json.ts";
import { serverSlug } from "../core/tool_id.ts";
import { usage } from "./_failure.ts";
import {
  canUndo,
  editsOf,
  type FileUndo,
  findTarget,
  findUndo,
  isReplacement,
  type TargetFile,
} from "./_import_file.ts";
import { undoableMoves } from "./_import_move.ts";
import { rulesOf } from "./_rules.ts";

/** The undo of an import: its edits, and facts for the user before the question. */
export interface ImportUndo {
  readonly undos: readonly FileUndo[];
  readonly facts: readonly string[];
}

/** Returns the undo of the last import into a file; without one, of moves that belong to no import. */
export async function importUndo(app: App, target: TargetFile): Promise<ImportUndo> {
  if (isReplacement(app, target.path)) {
    throw usage(
      `Cannot undo: the last edit of ${target.path} is a \`pml add --replace\``,
      "`pml add --undo` reverts that one first",
    );
  }
  const isImport = canUndo(app, target.path);
  const last = isImport ? editsOf(app, target.path).at(-1) : undefined;
  const { added, from = [], denied = [], doubles = [] } = last ?? {};
  const own = new Set(added?.map(serverSlug));
  const open = isImport ? new Set([...own, ...doubles]) : await importedNames(app);
  const isOwn = (name: string) =>
    isImport ? added === undefined || open.has(name) : !open.has(name);
  const moves = await undoableMoves(app, isOwn, from);
  if (!isImport && moves.undos.length > 0) return { undos: moves.undos, facts: moves.lines };
  const undos = [await findUndo(app, target), ...moves.undos];
  const names = (added ?? []).map((name) => app.parts.redactor.redact(quoted(name))).join(", ");
  const source = from.length === 0 ? "" : ` from ${from.join(", ")}`;
  const facts = added === undefined ? [] : [`The import of ${names}${source}:`];
  return { undos, facts: [...facts, ...moves.lines, ...await keptRules(app, [...own], denied)] };
}

/** Returns the names of the servers of all imports that can be undone. */
async function importedNames(app: App): Promise<ReadonlySet<string>> {
  const targets = [await findTarget(app, false), await findTarget(app, true)];
  const edits = targets.flatMap(({ path }) => editsOf(app, path));
  return new Set(
    edits.flatMap(({ added = [], doubles = [] }) => [...added.map(serverSlug), ...doubles]),
  );
}

/** Returns a line with the rules that an undo keeps: of its servers, and those of the import. */
async function keptRules(
  app: App,
  servers: readonly string[],
  denied: readonly string[],
): Promise<readonly string[]> {
  const own = (await Promise.all(servers.map((name) => rulesOf(app, name)))).flat();
  const ofBuiltins = (await Promise.all(denied.map((name) => rulesOf(app, name)))).flat()
    .filter((rule) => denied.some((name) => rule === `deny ${name}:*`));
  const rules = [...new Set([...own, ...ofBuiltins])];
  return rules.length === 0 ? [] : [
    "These rules stay, and apply to a later server of the same name. `pml rules remove RULE` " +
    "removes one:",
    ...rules.map((rule) => `  ${rule}`),
  ];
}

/**
 * Finds aliases and deprecated tools. Their descriptions contain the name of the tool to use instead.
 *
 * @module
 */

import { type ToolId, toolId } from "../core/tool_id.ts";
import { textOf } from "../core/json.ts";
import { memoized } from "../core/memo.ts";
import type { RankedTool } from "./_best_tools.ts";
import type { CatalogEntry } from "./catalog.ts";

/** The part of a description that is read. */
const LONGEST = 2_000;
const NAME = "(?:the )?[`\"']*([\\w./-]*\\w)";
/** "The same as X" counts only without a difference after it. */
const SAME = new RegExp(
  `\\b(?:same as ${NAME}[\`"']*(?: tool)?(?=[.;)\\n]|$)|` +
    `(?:alias (?:of|for)|renamed to|superseded by) ${NAME})`,
  "gi",
);
/** The beginning of a sentence about the tool itself; not in "lists packages that are deprecated". */
const DEPRECATED = /(?:^|[.\n([*]\s{0,4}|\b(?:is|now) )deprecated\b/i;
/** The length of the text after "deprecated" that is searched for the replacement. */
const AFTER_DEPRECATED = 200;
const REPLACEMENT = new RegExp(`\\b(?:use|prefer|by|of|in|to|with|see) ${NAME}`, "gi");
/** The score of an alias, relative to the score of the original. */
const ALIAS_FACTOR = 0.999;

/**
 * Puts aliases and deprecated tools directly behind their originals if they were before them. Only
 * originals of the same server count, so a server can raise only its own tools.
 */
export function demoteAliases<T extends RankedTool>(ranked: readonly T[]): readonly T[] {
  if (ranked.every(({ entry }) => originalsOf(entry).length === 0)) return ranked;
  const byId = new Map<ToolId, T>(ranked.map((ranking) => [ranking.entry.id, ranking]));
  const scores = new Map(ranked.map(({ entry, score }) => [entry.id, score]));
  for (const { entry, score } of ranked) {
    const original = originalsOf(entry).find((id) => id !== entry.id && byId.has(id));
    if (original === undefined || (scores.get(original) ?? 0) > score) continue;
    scores.set(original, score);
    scores.set(entry.id, score * ALIAS_FACTOR);
  }
  return ranked.map((ranking) => ({
    ...ranking,
    score: scores.get(ranking.entry.id) ?? ranking.score,
  }))
    .sort((one, other) => other.score - one.score);
}

/** Returns the ids of the originals that a description names. The server may not have them. */
const originalsOf = memoized(({ tool, server }: CatalogEntry): readonly ToolId[] => {
  const description = textOf(tool.description).slice(0, LONGEST);
  const names = [...description.matchAll(SAME)].map(([, same, other]) => same ?? other);
  const deprecated = DEPRECATED.exec(description);
  if (deprecated !== null) {
    const from = deprecated.index + deprecated[0].length;
    const rest = description.slice(from, from + AFTER_DEPRECATED);
    names.push(...[...rest.matchAll(REPLACEMENT)].map(([, name]) => name));
  }
  return names.flatMap((name) => name === undefined ? [] : [toolId(server.name, name)]);
});

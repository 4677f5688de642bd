/**
 * Compares two texts line by line, within bounds on time and size.
 *
 * @module
 */

import { diffArrays } from "diff";
import { linesOf } from "./_code.ts";
import { shorten } from "./_frame.ts";
import { type Html, html } from "./_html.ts";

/**
 * The maximum time of a comparison in milliseconds (`ms`), the maximum number of changed lines
 * (`edits`), and the maximum numbers of rows, of characters of a line, and of all characters shown.
 */
export const BOUNDS = { ms: 250, edits: 4_000, rows: 3_000, line: 2_000, characters: 400_000 };

/** The number of equal lines that are shown before and after a change. */
const CONTEXT = 3;

/** A line of a comparison, or the number of equal lines that are left out. */
type Row =
  | { readonly kind: "same" | "added" | "removed"; readonly line: string }
  | { readonly kind: "left_out"; readonly count: number };

/** Shows the differences between two texts, or a warning if there are too many. */
export function differences(from: string, to: string): Html {
  if (from === to) return html`<p class="calm">Both versions are the same.</p>`;
  const rows = compareLines(linesOf(from), linesOf(to));
  if (rows === undefined) {
    return html`<p class="warning">The versions are too different to be compared here. Download both, and
compare them on your machine.</p>`;
  }
  const { shown, isWhole } = limitRows(rows);
  const rest = isWhole
    ? html``
    : html`<p class="warning">Not all differences are shown. Download both versions, and
compare them on your machine.</p>`;
  return html`<pre class="code diff"><code>${shown.map(rowHtml)}</code></pre>${rest}`;
}

function compareLines(from: readonly string[], to: readonly string[]): readonly Row[] | undefined {
  const { ms: timeout, edits: maxEditLength } = BOUNDS;
  const changes = diffArrays([...from], [...to], { timeout, maxEditLength });
  return changes?.flatMap(({ added, removed, value }, index): readonly Row[] => {
    const kind = added ? "added" : removed ? "removed" : "same";
    const rows = (lines: readonly string[]) => lines.map((line): Row => ({ kind, line }));
    const isFirst = index === 0;
    const isLast = index === changes.length - 1;
    const context = (isFirst ? 0 : CONTEXT) + (isLast ? 0 : CONTEXT);
    if (kind !== "same" || value.length <= context + 1) return rows(value);
    return [
      ...rows(isFirst ? [] : value.slice(0, CONTEXT)),
      { kind: "left_out", count: value.length - context },
      ...rows(isLast ? [] : value.slice(-CONTEXT)),
    ];
  });
}

/** Returns the rows within the bounds on rows and characters. */
function limitRows(rows: readonly Row[]) {
  const lengths = rows.map((row) => row.kind === "left_out" ? 0 : row.line.length);
  let charactersLeft = BOUNDS.characters;
  const shown = rows.slice(0, BOUNDS.rows).filter((_, index) => {
    charactersLeft -= Math.min(lengths[index] ?? 0, BOUNDS.line);
    return charactersLeft > 0;
  });
  return { shown, isWhole: shown.length === rows.length };
}

function rowHtml(row: Row): Html {
  if (row.kind === "left_out") {
    return html`<span class="gap">${row.count} ${row.count === 1 ? "line" : "lines"} unchanged
</span>`;
  }
  const line = shorten(row.line, BOUNDS.line);
  switch (row.kind) {
    case "same":
      return html`<span>${line}
</span>`;
    case "added":
      return html`<ins><b>+</b>${line}
</ins>`;
    case "removed":
      return html`<del><b>-</b>${line}
</del>`;
  }
}

/**
 * Compares texts line by line, for no longer than a moment.
 *
 * @module
 */

import { diffArrays } from "diff";
import { linesOf } from "./_code.ts";
import { cut } from "./_frame.ts";
import { type Html, html } from "./_html.ts";

/** How long a comparison takes, how far apart the texts may be, and how much of it is shown. */
export const BOUNDS = { ms: 250, edits: 4_000, rows: 3_000, line: 2_000, characters: 400_000 };

const CONTEXT = 3;

/** A line of a comparison, or how many lines are left out. */
type Row =
  | { readonly kind: "same" | "added" | "removed"; readonly line: string }
  | { readonly kind: "left_out"; readonly count: number };

/** Shows what differs between two texts, or that they are too far apart. */
export function differences(from: string, to: string): Html {
  if (from === to) return html`<p class="calm">It is the same in both.</p>`;
  const rows = compared(linesOf(from), linesOf(to));
  if (rows === undefined) {
    return html`<p class="warning">The two are too different to be compared here. Download both, and
compare them with a program of yours.</p>`;
  }
  const { shown, isWhole } = fitting(rows);
  const rest = isWhole ? html`` : html`<p class="warning">There is more. Download both versions, and
compare them with a program of yours.</p>`;
  return html`<pre class="code diff"><code>${shown.map(rowOf)}</code></pre>${rest}`;
}

function compared(from: readonly string[], to: readonly string[]): readonly Row[] | undefined {
  const { ms: timeout, edits: maxEditLength } = BOUNDS;
  const changes = diffArrays([...from], [...to], { timeout, maxEditLength });
  return changes?.flatMap(({ added, removed, value }, at): readonly Row[] => {
    const kind = added ? "added" : removed ? "removed" : "same";
    const rows = (lines: readonly string[]) => lines.map((line): Row => ({ kind, line }));
    const isFirst = at === 0;
    const isLast = at === changes.length - 1;
    const context = (isFirst ? 0 : CONTEXT) + (isLast ? 0 : CONTEXT);
    if (kind !== "same" || value.length <= context + 1) return rows(value);
    return [
      ...rows(isFirst ? [] : value.slice(0, CONTEXT)),
      { kind: "left_out", count: value.length - context },
      ...rows(isLast ? [] : value.slice(-CONTEXT)),
    ];
  });
}

/** Returns the rows that fit. */
function fitting(rows: readonly Row[]) {
  const lengths = rows.map((row) => row.kind === "left_out" ? 0 : row.line.length);
  let room = BOUNDS.characters;
  const shown = rows.slice(0, BOUNDS.rows).filter((_, at) => {
    room -= Math.min(lengths[at] ?? 0, BOUNDS.line);
    return room > 0;
  });
  return { shown, isWhole: shown.length === rows.length };
}

function rowOf(row: Row): Html {
  if (row.kind === "left_out") {
    return html`<span class="gap">${row.count} ${row.count === 1 ? "line" : "lines"} the same
</span>`;
  }
  const line = cut(row.line, BOUNDS.line);
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

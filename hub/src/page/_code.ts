/**
 * Shows code and JSON line by line, up to a size.
 *
 * @module
 */

import { objectOf, parseExact, publishedKind } from "@casys/pml/registry";
import type { StoredEntry } from "../store/store.ts";
import { type Html, html } from "./_html.ts";

/** How much of a code is shown. */
export const SHOWN = { bytes: 500_000, lines: 20_000 };

/** A part of a text that is shown. */
export interface Part {
  readonly lines: readonly string[];
  /** Whether it is all of the text. */
  readonly isWhole: boolean;
}

/** Returns the lines of code that are shown. */
export function partOf(text: string): Part {
  const lines = linesOf(text.slice(0, SHOWN.bytes));
  return {
    lines: lines.slice(0, SHOWN.lines),
    isWhole: text.length <= SHOWN.bytes && lines.length <= SHOWN.lines,
  };
}

/** Returns the code of an entry for readers. The code of a capability is a member of JSON. */
export function readable({ manifest, code }: Pick<StoredEntry, "manifest" | "code">): string {
  const text = new TextDecoder().decode(code);
  if (!publishedKind(manifest.type)?.onlyCalls) return text;
  try {
    const { code: own, plan } = objectOf(parseExact(text));
    return typeof own === "string" ? own : JSON.stringify(plan, null, 2);
  } catch {
    return text; // it was imported, and clients refuse it
  }
}

/** Returns the lines of a text. The end of the last one begins no other. */
export function linesOf(text: string): readonly string[] {
  const lines = text.split(/\r\n|\n/);
  return lines.at(-1) === "" ? lines.slice(0, -1) : lines;
}

/** Shows code with the numbers of its lines, which are not copied with it. */
export function numbered(lines: readonly string[]): Html {
  const rows = lines.map((line, at) =>
    html`<span id="L${at + 1}">${line}
</span>`
  );
  return html`<pre class="code"><code>${rows}</code></pre>`;
}

/** Shows JSON, up to a number of characters. */
export function jsonBlock(value: unknown, max: number): Html {
  const text = JSON.stringify(value, null, 2) ?? "";
  const lines = linesOf(text.slice(0, max)).map((line) =>
    html`<span>${line}
</span>`
  );
  const more = text.length > max ? html`… (${text.length} characters)` : html``;
  return html`<pre><code>${lines}${more}</code></pre>`;
}

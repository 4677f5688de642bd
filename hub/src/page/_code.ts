/**
 * Shows code and JSON line by line, up to a size.
 *
 * @module
 */

import { objectOf, parseExact, publishedKind } from "@casys/pml/registry";
import type { StoredEntry } from "../store/store.ts";
import { type Html, html } from "./_html.ts";

/** The maximum amount of code that a page shows. */
export const MAX_SHOWN = { bytes: 500_000, lines: 20_000 };

/** The lines of code that a page shows. */
export interface ShownCode {
  readonly lines: readonly string[];
  /** Whether `lines` is the complete code. */
  readonly isWhole: boolean;
}

/** Returns the lines of code that are shown. */
export function shownCode(text: string): ShownCode {
  const lines = linesOf(text.slice(0, MAX_SHOWN.bytes));
  return {
    lines: lines.slice(0, MAX_SHOWN.lines),
    isWhole: text.length <= MAX_SHOWN.bytes && lines.length <= MAX_SHOWN.lines,
  };
}

/**
 * Returns the code of an entry as text for readers. A capability is stored as JSON; returns its code
 * or its plan.
 */
export function readableCode({ manifest, code }: Pick<StoredEntry, "manifest" | "code">): string {
  const text = new TextDecoder().decode(code);
  if (!publishedKind(manifest.type)?.onlyCalls) return text;
  try {
    const { code: source, plan } = objectOf(parseExact(text));
    return typeof source === "string" ? source : JSON.stringify(plan, null, 2);
  } catch {
    return text; // an invalid capability, which `pml-hub import` accepts and clients refuse
  }
}

/** Returns the lines of a text, without an empty line after a final line break. */
export function linesOf(text: string): readonly string[] {
  const lines = text.split(/\r\n|\n/);
  return lines.at(-1) === "" ? lines.slice(0, -1) : lines;
}

/** Shows code with line numbers. The numbers are CSS, so that a user does not copy them. */
export function numberedLines(lines: readonly string[]): Html {
  const rows = lines.map((line, index) =>
    html`<span id="L${index + 1}">${line}
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

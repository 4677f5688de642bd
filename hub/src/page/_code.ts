/**
 * Shows code and JSON line by line, up to a size.
 *
 * @module
 */

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
export function partOf(code: Uint8Array): Part {
  const lines = linesOf(new TextDecoder().decode(code.subarray(0, SHOWN.bytes)));
  return {
    lines: lines.slice(0, SHOWN.lines),
    isWhole: code.length <= SHOWN.bytes && lines.length <= SHOWN.lines,
  };
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

/**
 * The text of an answer of `search`, within a number of tokens.
 *
 * @module
 */

import { visible } from "../core/json.ts";
import { tokensOf } from "../core/tokens.ts";
import type { SearchAnswer, SearchHit } from "../search/search.ts";

/** How many tools an answer shows in full, and how many only by name. */
export interface Shares {
  readonly full: number;
  readonly names: number;
}

/** The shares of one query, and of each of several queries. */
const ONE: Shares = { full: 5, names: 15 };
const EACH: Shares = { full: 2, names: 3 };

/** The tokens (estimated) of the tools of an answer, and of the lines that fill it up. */
const NAMES_TOKENS = 370;
const FILLED_TOKENS = 430;
const QUERY_SHOWN = 60;

/** Returns the shares of an answer. `full` is the number of tools that the model asked for. */
export function sharesOf(queries: number, full?: number): Shares {
  const { names, ...usual } = queries > 1 ? EACH : ONE;
  return { full: full ?? usual.full, names };
}

/** The lines of an answer with its tools, and which tools are in it. */
export class SearchText {
  /** The tools that are shown in full. */
  readonly inFull: SearchHit[] = [];
  readonly #lines: string[] = [];
  #tokens = 0;

  /** Writes the tools of each query. */
  static async of(
    { byQuery }: Pick<SearchAnswer, "byQuery">,
    { queries, shares, lineOf, nameOf }: {
      readonly queries: readonly string[];
      readonly shares: Shares;
      /** Returns a tool in full, and by its name. */
      readonly lineOf: (hit: SearchHit) => Promise<string>;
      readonly nameOf: (hit: SearchHit) => string;
    },
  ): Promise<SearchText> {
    const text = new SearchText();
    const isMany = queries.length > 1;
    const isShown = (hit: SearchHit) => text.inFull.some(({ id }) => id === hit.id);
    for (const [at, hits] of byQuery.entries()) {
      if (hits.length === 0) continue;
      if (isMany) text.add(`# ${visible(queries[at] ?? "", QUERY_SHOWN)}`);
      for (const hit of hits.slice(0, shares.full)) {
        if (isShown(hit)) text.add(`${hit.id} (above)`);
        else {
          text.inFull.push(hit);
          text.add(await lineOf(hit));
        }
      }
      text.#addNames(hits.slice(shares.full, shares.full + shares.names).map(nameOf), isMany);
    }
    return text;
  }

  /** Adds a line. */
  add(line: string): void {
    this.#lines.push(line);
    this.#tokens += tokensOf(line) + 1;
  }

  /** Adds a line that the answer can do without. Returns whether it fits. */
  addIfFits(line: string): boolean {
    const fits = this.#tokens + tokensOf(line) < FILLED_TOKENS;
    if (fits) this.add(line);
    return fits;
  }

  /** Returns the answer. */
  toString(): string {
    return this.#lines.join("\n");
  }

  /** Adds tools by their names only; with one query, as many as fit. */
  #addNames(names: readonly string[], isMany: boolean): void {
    let line = "";
    for (const name of names) {
      const longer = line === "" ? `Also: ${name}` : `${line}, ${name}`;
      if (!isMany && line !== "" && this.#tokens + tokensOf(longer) > NAMES_TOKENS) break;
      line = longer;
    }
    if (line !== "") this.add(line);
  }
}

/**
 * Writes the answer of the meta-tool `search`, within a number of tokens.
 *
 * @module
 */

import { visible } from "../core/json.ts";
import { tokensOf } from "../core/tokens.ts";
import { splitToolId } from "../core/tool_id.ts";
import type { CatalogServer } from "../search/catalog.ts";
import type { SearchAnswer, SearchHit } from "../search/search.ts";

/** How many tools an answer shows in full, and how many further tools only by name. */
export interface Shares {
  readonly full: number;
  readonly names: number;
}

/** The shares for one query, and for each of several queries. */
const ONE_QUERY: Shares = { full: 5, names: 24 };
const EACH_QUERY: Shares = { full: 2, names: 3 };

/** The maximum estimated tokens of an answer without its optional lines. */
const NAMES_TOKENS = 400;
/** The maximum estimated tokens of an answer with its optional lines. */
const ANSWER_TOKENS = 430;
/** The maximum length of a query in an answer, in characters. */
const QUERY_LENGTH_MAX = 60;

/** Returns the shares of an answer. `full` is the number of tools that the model requested. */
export function sharesOf(queries: number, full?: number): Shares {
  const { names, ...usual } = queries > 1 ? EACH_QUERY : ONE_QUERY;
  return { full: full ?? usual.full, names };
}

/** The lines of an answer, and the tools that it shows in full. */
export class SearchText {
  /** The tools that are shown in full. */
  readonly fullHits: SearchHit[] = [];
  readonly #lines: string[] = [];
  #tokens = 0;

  /** Writes the tools of each query. */
  static async create(
    { byQuery }: Pick<SearchAnswer, "byQuery">,
    { queries, shares, lineOf, marksOf }: {
      readonly queries: readonly string[];
      readonly shares: Shares;
      /** Returns a tool in full. */
      readonly lineOf: (hit: SearchHit) => Promise<string>;
      /** Returns the marks of a server that was not used here yet; "" for other servers. */
      readonly marksOf: (server: CatalogServer) => string;
    },
  ): Promise<SearchText> {
    const text = new SearchText();
    const hasSeveralQueries = queries.length > 1;
    const isShown = (hit: SearchHit) => text.fullHits.some(({ id }) => id === hit.id);
    for (const [index, hits] of byQuery.entries()) {
      if (hits.length === 0) continue;
      if (hasSeveralQueries) text.add(`# ${visible(queries[index] ?? "", QUERY_LENGTH_MAX)}`);
      for (const hit of hits.slice(0, shares.full)) {
        if (isShown(hit)) text.add(`${hit.id} (above)`);
        else {
          text.fullHits.push(hit);
          text.add(await lineOf(hit));
        }
      }
      const others = hits.slice(shares.full, shares.full + shares.names);
      text.#addNames(others, { marksOf, hasSeveralQueries });
    }
    return text;
  }

  /** Adds a line. */
  add(line: string): void {
    this.#lines.push(line);
    this.#tokens += tokensOf(line) + 1;
  }

  /** Adds an optional line. Returns whether it fits. */
  addIfFits(line: string): boolean {
    const fits = this.#tokens + tokensOf(line) < ANSWER_TOKENS;
    if (fits) this.add(line);
    return fits;
  }

  /** Returns the answer. */
  toString(): string {
    return this.#lines.join("\n");
  }

  /** Adds tools by their names only, grouped by server; with one query, as many as fit. */
  #addNames(
    hits: readonly SearchHit[],
    { marksOf, hasSeveralQueries }: {
      readonly marksOf: (server: CatalogServer) => string;
      readonly hasSeveralQueries: boolean;
    },
  ): void {
    const groups = new Map<string, { readonly names: string[]; readonly marks: string }>();
    let line = "";
    for (const { id, server } of hits) {
      const group = groups.get(server.name) ?? { names: [], marks: marksOf(server) };
      groups.set(server.name, group);
      group.names.push(splitToolId(id).tool);
      const longer = `Also: ${
        [...groups].map(([name, group]) => namesText(name, group)).join(", ")
      }`;
      if (!hasSeveralQueries && line !== "" && this.#tokens + tokensOf(longer) > NAMES_TOKENS) {
        break;
      }
      line = longer;
    }
    if (line !== "") this.add(line);
  }
}

/** Returns the tools of a server, such as `github:{list_issues, get_issue}`. */
function namesText(
  server: string,
  { names, marks }: { readonly names: readonly string[]; readonly marks: string },
): string {
  const text = names.length === 1 ? names[0] : `{${names.join(", ")}}`;
  return `${server}:${text}${marks === "" ? "" : ` [${marks}]`}`;
}

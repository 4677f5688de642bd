/**
 * Reads the tools from an answer of `search`.
 *
 * @module
 */

import type { GoldQuery } from "./metrics.ts";

/** A query with the tools that answer it, and the kind of its text. */
export interface LabelledQuery extends Partial<GoldQuery> {
  readonly query: string;
  readonly kind?: string;
}

/** The name of a hit at the beginning of its line; lines of descriptions are indented. */
const FULL = /^([\w.-]+):([^\s(]+)/;
/** The tools of one server in a line that lists only names. */
const NAMES = /([\w.-]+):(?:\{([^}]*)\}|([^,[]+))/g;

/** Returns the ids of the tools in an answer. */
export function toolsIn(answer: string): ReadonlySet<string> {
  return new Set(
    answer.split("\n").flatMap((line) => {
      if (!line.startsWith("Also: ")) return FULL.exec(line)?.slice(1, 3).join(":") ?? [];
      return [...line.slice("Also: ".length).matchAll(NAMES)].flatMap((
        [, server, names, singleName],
      ) => (names ?? singleName ?? "").split(", ").map((name) => `${server}:${name.trim()}`));
    }),
  );
}

/** Returns for each kind of query the mean share of needed tools that the answers contain. */
export function recallByKind(
  queries: readonly LabelledQuery[],
  answers: readonly string[],
): Readonly<Record<string, number>> {
  const shares = queries.map(({ kind = "query", gold = [], groups }, at) => {
    const returnedTools = toolsIn(answers[at] ?? "");
    const needed = groups ?? gold.map((id) => [id]);
    const met = needed.filter((group) =>
      group.some((id) => returnedTools.has(withLowerServer(id)))
    );
    return { kind, share: met.length / needed.length };
  });
  const byKind = Map.groupBy(
    shares.filter(({ share }) => !Number.isNaN(share)),
    (share) => share.kind,
  );
  return Object.fromEntries([...byKind].map(([kind, all]) => [
    kind,
    Math.round(1_000 * all.reduce((sum, { share }) => sum + share, 0) / all.length) / 1_000,
  ]));
}

/** Converts the server in an id to lower case, as PML does. */
function withLowerServer(id: string): string {
  return id.replace(/^[^:]*/, (server) => server.toLowerCase());
}

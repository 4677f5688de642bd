/**
 * How good a ranking of tools is: the usual metrics of retrieval.
 *
 * @module
 */

/**
 * A query and the tools that answer it. Each group contains alternatives; without groups each gold
 * id is one.
 */
export interface Judged {
  readonly query: string;
  readonly gold: readonly string[];
  readonly groups?: readonly (readonly string[])[];
}

/** Averages over queries, rounded to three digits. */
export type Metrics = Readonly<
  Record<"n" | "H@1" | "R@1" | "R@5" | "R@10" | "MRR" | "nDCG@10", number>
>;

/** Looks at one ranking a query, the best first: hit at 1, recall, reciprocal rank, gain. */
export function metrics(
  queries: readonly Judged[],
  rank: (query: string) => readonly string[],
): Metrics {
  const each = queries.map((row) => measured(row, rank(row.query)));
  const mean = (value: (one: Measured) => number) =>
    Math.round(1_000 * each.reduce((sum, one) => sum + value(one), 0) / each.length) / 1_000;
  return {
    n: queries.length,
    "H@1": mean(({ ranks }) => best(ranks) === 0 ? 1 : 0),
    "R@1": mean(({ ranks }) => recall(ranks, 1)),
    "R@5": mean(({ ranks }) => recall(ranks, 5)),
    "R@10": mean(({ ranks }) => recall(ranks, 10)),
    MRR: mean(({ ranks }) => 1 / (best(ranks) + 1)),
    "nDCG@10": mean(gain),
  };
}

interface Measured {
  /** The rank of the best of each group, from 0; Infinity without one. */
  readonly ranks: readonly number[];
}

function measured({ gold, groups }: Judged, ids: readonly string[]): Measured {
  const place = new Map(ids.map((id, at) => [id, at]));
  const wanted = groups ?? gold.map((id) => [id]);
  return { ranks: wanted.map((group) => best(group.map((id) => place.get(id) ?? Infinity))) };
}

function best(ranks: readonly number[]): number {
  return Math.min(...ranks);
}

function recall(ranks: readonly number[], depth: number): number {
  return ranks.filter((rank) => rank < depth).length / ranks.length;
}

function gain({ ranks }: Measured): number {
  const worth = (rank: number) => 1 / Math.log2(rank + 2);
  const found = ranks.filter((rank) => rank < 10).reduce((sum, rank) => sum + worth(rank), 0);
  const ideal = ranks.slice(0, 10).reduce((sum, _, at) => sum + worth(at), 0);
  return Math.min(1, found / ideal);
}

/**
 * Computes the usual retrieval metrics of a ranking of tools.
 *
 * @module
 */

/**
 * A query and the tools that answer it. Each group contains alternatives; without groups, each gold
 * id is a group.
 */
export interface GoldQuery {
  readonly query: string;
  readonly gold: readonly string[];
  readonly groups?: readonly (readonly string[])[];
}

/** Means over all queries, rounded to three digits. */
export type Metrics = Readonly<
  Record<"n" | "H@1" | "R@1" | "R@5" | "R@10" | "MRR" | "nDCG@10", number>
>;

/** Returns the metrics of rankings, which `rank` returns for each query, the best first. */
export function metrics(
  queries: readonly GoldQuery[],
  rank: (query: string) => readonly string[],
): Metrics {
  const each = queries.map((row) => queryRanks(row, rank(row.query)));
  const mean = (value: (ranks: QueryRanks) => number) =>
    Math.round(1_000 * each.reduce((sum, ranks) => sum + value(ranks), 0) / each.length) / 1_000;
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

interface QueryRanks {
  /** The best rank in each group, from 0; Infinity if no tool of the group was found. */
  readonly ranks: readonly number[];
}

function queryRanks({ gold, groups }: GoldQuery, ids: readonly string[]): QueryRanks {
  const rankById = new Map(ids.map((id, at) => [id, at]));
  const wanted = groups ?? gold.map((id) => [id]);
  return { ranks: wanted.map((group) => best(group.map((id) => rankById.get(id) ?? Infinity))) };
}

function best(ranks: readonly number[]): number {
  return Math.min(...ranks);
}

function recall(ranks: readonly number[], depth: number): number {
  return ranks.filter((rank) => rank < depth).length / ranks.length;
}

function gain({ ranks }: QueryRanks): number {
  const gainAt = (rank: number) => 1 / Math.log2(rank + 2);
  const actual = ranks.filter((rank) => rank < 10).reduce((sum, rank) => sum + gainAt(rank), 0);
  const ideal = ranks.slice(0, 10).reduce((sum, _, at) => sum + gainAt(at), 0);
  return Math.min(1, actual / ideal);
}

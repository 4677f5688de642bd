/**
 * Finds the tools that published capabilities call right before or right after another tool.
 *
 * @module
 */

import { type JsonObject, textOf } from "@casys/pml/registry";

/** A tool that capabilities call right before or after another tool. */
export interface Related {
  readonly tool: string;
  /** Whether it is called after or before the other tool. */
  readonly place: "after" | "before";
  /** The number of organisations that published such capabilities. */
  readonly organisations: number;
  /** The number of capabilities that call the two tools in this order. */
  readonly capabilities: number;
}

/** Returns each pair of different tools that a manifest calls one after the other, once. */
export function pairsOf({ tools_used: used }: JsonObject): readonly (readonly [string, string])[] {
  const tools = Array.isArray(used) ? used.map(textOf) : [];
  const pairs = tools.flatMap((tool, at) => {
    const next = tools[at + 1];
    return next === undefined || next === tool ? [] : [[tool, next] as const];
  });
  return [...new Map(pairs.map((pair) => [pair.join(" "), pair])).values()];
}

/**
 * Returns the query for the tools that are called right before or after a tool, in the order of their
 * numbers of organisations. `tool` and `limit` are placeholders.
 */
export function relatedQuery(
  place: Related["place"],
  [tool, limit]: readonly [tool: string, limit: string],
): string {
  const other = place === "after" ? "before" : "after";
  return `SELECT f.${place} AS tool, count(DISTINCT coalesce(c.owner, '')) AS organisations,
      count(DISTINCT f.fqdn) AS capabilities
    FROM follows f JOIN newest n USING (fqdn, version) JOIN capabilities c USING (fqdn, version)
    WHERE f.${other} = ${tool} GROUP BY f.${place}
    ORDER BY organisations DESC, capabilities DESC, tool LIMIT ${limit}`;
}

/** Converts a row of `relatedQuery()`. */
export function relatedOf(
  place: Related["place"],
  { tool, organisations, capabilities }: Readonly<Record<string, unknown>>,
): Related {
  return {
    tool: String(tool),
    place,
    organisations: Number(organisations),
    capabilities: Number(capabilities),
  };
}

/**
 * Which tool follows which: read from the tools that published capabilities call, in their order.
 *
 * @module
 */

import { type JsonObject, textOf } from "@casys/pml/registry";

/** A tool that is used before or after another one. */
export interface Related {
  readonly tool: string;
  /** Whether it comes after the tool that was asked about, or before it. */
  readonly place: "after" | "before";
  /** How many organisations have published such a capability. */
  readonly organisations: number;
  /** How many capabilities have the two in this order. */
  readonly capabilities: number;
}

/** Returns the pairs of tools that follow each other, each once. */
export function pairsOf({ tools_used: used }: JsonObject): readonly (readonly [string, string])[] {
  const tools = Array.isArray(used) ? used.map(textOf) : [];
  const pairs = tools.flatMap((tool, at) => {
    const next = tools[at + 1];
    return next === undefined || next === tool ? [] : [[tool, next] as const];
  });
  return [...new Map(pairs.map((pair) => [pair.join(" "), pair])).values()];
}

/** Returns the query for the tools related to a tool, those of most organisations first. */
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

/** Reads a row of that query. */
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

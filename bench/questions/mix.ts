/**
 * The parameters of the sessions: the servers of a user, the calls of a model, and the answers of the
 * user. The values were chosen before the first result.
 *
 * @module
 */

import type { Effect } from "./effects.ts";

/** The number of sessions. Each begins without rules. */
export const SESSIONS = 200;
/** The seed of the random numbers. */
export const SEED = 49;
/** The smallest and the largest number of servers in a session. */
export const SERVERS = { least: 3, most: 8 } as const;
/** The number of tool calls in a session. */
export const CALLS = 100;
/** The shares of the calls by effect. */
export const MIX: readonly (readonly [effect: Effect, part: number])[] = [
  ["read", 0.7],
  ["write", 0.2],
  ["destructive", 0.05],
  ["sends", 0.05],
];
/**
 * The numbers of requests for resources and for prompts in a session, for each server that has any
 * (three of the eight servers).
 */
export const PART_CALLS = { resources: 2, prompts: 1 } as const;
export const WITH_RESOURCES: readonly string[] = ["memory", "context7", "github"];
export const WITH_PROMPTS: readonly string[] = ["context7", "github"];

/**
 * Returns the weight of a tool among the tools with the same effect: a model uses some tools often.
 * `rank` is the random rank of the tool in the session, from 0.
 */
export function weightOf(rank: number): number {
  return 1 / (rank + 1);
}

/** Returns whether the user always answers "once", even if wider answers are offered. */
export function isAnsweredOnce(effect: Effect): boolean {
  return effect === "destructive" || effect === "sends";
}

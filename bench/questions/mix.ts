/**
 * The sessions of the measure of questions: the servers of a user, the calls of a model, and the way
 * of answering. These values were chosen before the first result.
 *
 * @module
 */

import type { Effect } from "./effects.ts";

/** The number of sessions. Each begins without rules of the user. */
export const SESSIONS = 200;
/** The beginning of the random numbers. */
export const SEED = 49;
/** The smallest and the largest number of servers in a session. */
export const SERVERS = { least: 3, most: 8 } as const;
/** The calls of tools in a session. */
export const CALLS = 100;
/** The parts of the calls by their effects. */
export const MIX: readonly (readonly [effect: Effect, part: number])[] = [
  ["read", 0.7],
  ["write", 0.2],
  ["destructive", 0.05],
  ["sends", 0.05],
];
/**
 * The requests for resources and prompts of each server that has some, in a session. Of the eight
 * servers three have some.
 */
export const PART_CALLS = { resources: 2, prompts: 1 } as const;
export const WITH_RESOURCES: readonly string[] = ["memory", "context7", "github"];
export const WITH_PROMPTS: readonly string[] = ["context7", "github"];

/**
 * Returns the weight of a tool among those of its effect: a model uses some tools often. `rank` is
 * its random place in the session, from 0.
 */
export function weightOf(rank: number): number {
  return 1 / (rank + 1);
}

/** Returns whether the user answers "once" only, however wide the offered answers are. */
export function isAnsweredOnce(effect: Effect): boolean {
  return effect === "destructive" || effect === "sends";
}

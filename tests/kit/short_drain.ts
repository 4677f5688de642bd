/**
 * Shortens the time of calls after a signal to one second, where it is loaded before PML.
 *
 * @module
 */

const { setTimeout: whole } = globalThis;
const [DRAIN_MS, SHORT_MS] = [10_000, 1_000];

globalThis.setTimeout =
  ((act: () => void, ms?: number, ...args: []) =>
    whole(act, ms === DRAIN_MS ? SHORT_MS : ms, ...args)) as typeof setTimeout;

/**
 * The memory of `pml serve` over some thousand requests. `bench/serve/memory.ts` sends more.
 *
 * @module
 */

import assert from "node:assert/strict";
import { measureMemory } from "../bench/serve/memory.ts";

/** A leak of some hundred bytes per request would be more than this. */
const GROWN_MAX = 0.2;

Deno.test("the memory of pml serve does not grow with its requests", async () => {
  const { before, after, grown } = await measureMemory(5_000, { warmUp: 5_000, step: 500 });
  assert.ok(grown < GROWN_MAX, `${before} bytes, then ${after}`);
});

/**
 * What must hold of a pool and its model at any time.
 *
 * @module
 */

import assert from "node:assert/strict";
import { IDLE_CHILDREN, type Phase, type Stage } from "./_pool_model_test.ts";

/** Asserts what must hold at any time. */
export function assertSound(stage: Stage): void {
  assert.equal(stage.wrong, undefined);
  for (const { told, wanted } of stage.uses) {
    assert.deepEqual(told, wanted === undefined ? [] : [wanted]);
  }
  const idle = stage.things.filter((one) => one.phase === "up" && one.due < Infinity && one.alive);
  for (const thing of idle) {
    assert.ok(thing.due > stage.clock.now(), `${thing.key} is idle since long`);
  }
  assert.ok(idle.filter(({ drains }) => !drains).length <= IDLE_CHILDREN, "too many are idle");
  const living = livingOf(stage);
  assert.ok(living <= stage.most, `${living} live`);
  if (stage.queue.length === 0) return;
  assert.equal(living, stage.most, "a place is free, and somebody waits");
  const isEnough = stage.among("ending").length >= stage.queue.length;
  const unused = stage.among("up").filter(({ uses, alive }) => uses.size === 0 && alive);
  assert.ok(isEnough || unused.length === 0, "something is unused, and somebody waits");
}

/** How many take a place: who died by itself takes none. */
function livingOf(stage: Stage): number {
  const busy = ["starting", "up", "ending"].flatMap((phase) => stage.among(phase as Phase));
  return busy.filter((thing) => thing.alive || thing.phase === "ending" && !thing.died).length;
}

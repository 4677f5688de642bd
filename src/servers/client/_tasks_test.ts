/**
 * Tests which tasks keep a server running.
 *
 * @module
 */

import assert from "node:assert/strict";
import { RunningTasks } from "./_tasks.ts";

Deno.test("RunningTasks keeps no server running for unknown tasks, or for tasks that have ended", async () => {
  const kept: Promise<void>[] = [];
  const tasks = new RunningTasks((_, until) => void kept.push(until));
  const state = { taskId: "one", lifeMs: 60_000 };
  tasks.update("x", { ...state, status: "working" });
  assert.equal(kept.length, 0);
  tasks.note("x", { ...state, status: "working" });
  assert.equal(kept.length, 1);
  tasks.update("x", { ...state, status: "completed" });
  await kept[0];
});

/**
 * Which tasks keep a server.
 *
 * @module
 */

import assert from "node:assert/strict";
import { RunningTasks } from "./_tasks.ts";

Deno.test("RunningTasks keeps no server by tasks that it made up, and lets go of those that end", async () => {
  const kept: Promise<void>[] = [];
  const tasks = new RunningTasks((_, until) => void kept.push(until));
  const state = { taskId: "one", ms: 60_000 };
  tasks.update("x", { ...state, status: "working" });
  assert.equal(kept.length, 0);
  tasks.note("x", { ...state, status: "working" });
  assert.equal(kept.length, 1);
  tasks.update("x", { ...state, status: "completed" });
  await kept[0];
});

/**
 * Tests of the calls that the page reads from the journal.
 *
 * @module
 */

import assert from "node:assert/strict";
import { Journal, type JournalRecord } from "../audit/journal.ts";
import { Redactor } from "../audit/redact.ts";
import { JournalCalls } from "./calls.ts";

async function journal(workspace = "/work") {
  const home = await Deno.makeTempDir();
  const config = { home, workspace, limits: { journalBytes: 1 << 20, journalFiles: 5 } };
  const failures = { onFailedWrite: (error: Error) => assert.fail(error.message) };
  const file = Journal.open(config, new Redactor(), failures);
  const calls = new JournalCalls(home);
  let number = 0;
  const call = async (
    tool: string,
    end: Partial<Extract<JournalRecord, { kind: "end" }>> | undefined,
    start: Partial<Extract<JournalRecord, { kind: "start" }>> = {},
  ) => {
    const callId = `call-${number++}`;
    const about = { callId, actor: "local", via: "call", tool, arguments: {}, ...start };
    await file.write({ kind: "start", ...about });
    if (end !== undefined) {
      await file.write({ kind: "end", callId, outcome: "result", ms: 3, ...end });
    }
    return callId;
  };
  return {
    ...{ home, file, calls, call },
    [Symbol.asyncDispose]: async () => {
      calls[Symbol.dispose]();
      file[Symbol.dispose]();
      await Deno.remove(home, { recursive: true });
    },
  };
}

Deno.test("calls of the journal have their workspace, state, size and identity", async () => {
  await using at = await journal();
  await at.call("files:read", { size: 12 });
  await at.call("files:write", { outcome: "failed", code: "PERMISSION_DENIED" }, { actor: "ci" });
  await at.call("files:write", { outcome: "failed", code: "CANCELLED" });
  await at.call("files:slow", undefined);
  const changed = await at.calls.read();
  assert.equal(changed.length, 4);
  const { calls, more } = at.calls.list();
  assert.equal(more, false);
  assert.deepEqual(calls.map(({ state }) => state).sort(), [
    "cancelled",
    "done",
    "refused",
    "running",
  ]);
  assert.deepEqual(new Set(calls.map(({ workspace }) => workspace)), new Set(["/work"]));
  assert.equal(calls.find(({ state }) => state === "done")?.resultBytes, 12);
  assert.equal(calls.find(({ state }) => state === "refused")?.identity, "ci");
  assert.deepEqual(at.calls.workspaces, ["/work"]);
  assert.deepEqual(await at.calls.read(), []);
});

Deno.test("a plan and code have a row, with their steps and their end", async () => {
  await using at = await journal();
  const event = (event: string, about: Readonly<Record<string, string | number>>) =>
    at.file.write({ kind: "event", event, actor: "local", about });
  await event("plan began", { run: "p1", tasks: 2 });
  const step = await at.call("files:read", {}, { run: "p1", via: "plan" });
  await at.call("files:write", { outcome: "failed" }, { run: "p1", via: "plan" });
  await event("code began", { run: "c1" });
  await at.calls.read();
  const stateOf = (id: string) => at.calls.list().calls.find((row) => row.id === id)?.state;
  assert.deepEqual([stateOf("p1"), stateOf("c1")], ["running", "running"]);
  await event("plan ended", { run: "p1", tasks: 2, done: 1, failed: 1 });
  await event("code ended", { run: "c1", outcome: "value" });
  assert.deepEqual((await at.calls.read()).map(({ id }) => id), ["p1", "c1"]);
  assert.deepEqual([stateOf("p1"), stateOf("c1")], ["failed", "done"]);
  const story = await at.calls.story("p1");
  assert.equal(story?.call.tool, "plan of 2 tasks");
  assert.deepEqual(story?.steps.map(({ what }) => what), ["plan began", "plan ended"]);
  assert.equal(story?.children.length, 2);
  assert.equal((await at.calls.story(step))?.parent?.id, "p1");
  const series = at.calls.series({ now: Date.now(), intervalMs: 60_000, count: 2 });
  assert.equal(series.calls.reduce((all, one) => all + one, 0), 2, "runs are no calls");
});

Deno.test("calls are filtered by server, state and text, and come in pages by time", async () => {
  await using at = await journal();
  for (let number = 0; number < 30; number++) await at.call(`one:t${number}`, {});
  await at.call("other:t", { outcome: "tool error" });
  await at.calls.read();
  assert.equal(at.calls.list({ server: "other" }).calls.length, 1);
  assert.equal(at.calls.list({ state: "failed" }).calls.length, 1);
  assert.equal(at.calls.list({ text: "T7" }).calls.length, 1);
  assert.equal(at.calls.list({ workspace: "/elsewhere" }).calls.length, 0);
  const seen = new Set<string>();
  let before = Infinity;
  for (let more = true; more;) {
    const page = at.calls.list({ before, limit: 4 });
    for (const { id } of page.calls) seen.add(id);
    before = page.calls.at(-1)?.at ?? 0;
    more = page.more;
  }
  assert.equal(seen.size, 31);
});

Deno.test("the story of a call has its records in order, and the calls of its run", async () => {
  await using at = await journal();
  const id = await at.call("a:b", {}, { run: "run-1", rule: "a:*" });
  const child = await at.call("a:c", {}, { run: "run-1" });
  await at.file.write({ kind: "event", event: "approved", about: { callId: id, channel: "page" } });
  await at.calls.read();
  const story = await at.calls.story(id);
  assert.deepEqual(story?.steps.map(({ what }) => what).sort(), ["approved", "end", "start"]);
  assert.deepEqual(story?.children.map((one) => one.id), [child]);
  assert.equal(await at.calls.story("unknown"), undefined);
});

Deno.test("a call of a process that was killed is no longer shown as running", async () => {
  const home = await Deno.makeTempDir();
  await Deno.mkdir(`${home}/journal`);
  const at = new Date().toISOString();
  const lines = [
    { seq: 0, at, kind: "event", event: "journal opened", about: { pid: 2 ** 30 } },
    { seq: 1, at, kind: "start", callId: "x", actor: "local", tool: "a:b", arguments: {} },
  ].map((one) => `${JSON.stringify(one)}\n`);
  const name = `2026-11-30T00-00-00.000Z-${2 ** 30}-12345678.0001.jsonl`;
  await Deno.writeTextFile(`${home}/journal/${name}`, lines.join(""), { mode: 0o600 });
  using calls = new JournalCalls(home);
  await calls.read();
  assert.deepEqual(calls.list().calls.map(({ state, code }) => [state, code]), [
    ["failed", "ENDED"],
  ]);
  await Deno.remove(home, { recursive: true });
});

Deno.test("counts over time are those of the calls of each step", async () => {
  await using at = await journal();
  await at.call("a:b", { ms: 10, size: 400 });
  await at.call("a:b", { ms: 20, outcome: "tool error" });
  await at.calls.read();
  const series = at.calls.series({ now: Date.now(), intervalMs: 3_600_000, count: 2 });
  const sum = (values: readonly number[]) => values.reduce((all, one) => all + one, 0);
  assert.equal(sum(series.calls), 2);
  assert.equal(sum(series.errors), 1);
  assert.equal(sum(series.resultTokens), 100);
  assert.equal(series.at.length, 2);
});

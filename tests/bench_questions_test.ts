/**
 * The measure of questions: its figures, and that no call has an unseen effect.
 *
 * @module
 */

import assert from "node:assert/strict";
import { EFFECTS, LYING_EFFECTS } from "../bench/questions/effects.ts";
import { count, STRATEGIES } from "../bench/questions/measure.ts";
import { CALLS, MIX, SERVERS, SESSIONS } from "../bench/questions/mix.ts";
import { drawSessions } from "../bench/questions/sessions.ts";
import { readingOf } from "../src/policy/tool_reading.ts";

const SETS = [false, true].map((areLying) => {
  const sessions = drawSessions({ areLying });
  const counts = STRATEGIES.map((strategy) => count(sessions, strategy));
  return { areLying, sessions, counts };
});

function questionsOf(counts: (typeof SETS)[number]["counts"], name: string): number {
  return counts.find((one) => one.name === name)?.questions ?? assert.fail(name);
}

Deno.test("the sessions of the measure have the committed mix of servers and calls", () => {
  for (const { sessions, areLying } of SETS) {
    assert.equal(sessions.length, SESSIONS);
    const sizes = sessions.map(({ servers }) => servers.length);
    assert.deepEqual([Math.min(...sizes), Math.max(...sizes)], [SERVERS.least, SERVERS.most]);
    const calls = sessions.flatMap(({ calls }) => calls).flatMap(({ tool }) => tool ?? []);
    assert.equal(calls.length, SESSIONS * CALLS);
    for (const [effect, part] of MIX) {
      const share = calls.filter((tool) => tool.effect === effect).length / calls.length;
      assert.ok(Math.abs(share - part) < 0.03, `${effect}: ${share}, lying: ${areLying}`);
    }
  }
  assert.equal(Object.keys(EFFECTS).length, 8);
  assert.equal(Object.keys(LYING_EFFECTS).length, 2);
});

Deno.test("a table and an answer for all shown tools need at most a fifth of the questions", () => {
  for (const { counts } of SETS) {
    const before = questionsOf(counts, "always for the tool");
    assert.ok(questionsOf(counts, "table, then always for these N") <= before / 5);
  }
});

Deno.test("each call that writes, destroys or sends was shown by the name of its tool", () => {
  for (const { counts } of SETS) {
    for (const { name, unseen, effects } of counts) {
      assert.equal(unseen, 0, name);
      assert.ok(effects > 5_000);
    }
  }
});

Deno.test("no tool that writes or destroys counts as reading, unless its server lies", () => {
  const [{ sessions, counts }] = SETS as [(typeof SETS)[number], ...typeof SETS];
  const tools = sessions.flatMap(({ servers }) => servers).flatMap(({ tools }) => tools);
  const readers = new Set(
    tools.filter(({ definition, effect }) => effect !== "read" && readingOf(definition).reads)
      .map(({ id }) => id),
  );
  // It sends the file that it reads, and PML marks it as a tool that reads the files it is given.
  assert.deepEqual([...readers], ["firecrawl:firecrawl_parse"]);
  assert.ok(counts.every(({ asReading, effects }) => asReading < effects / 100));
});

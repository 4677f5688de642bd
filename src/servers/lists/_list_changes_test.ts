import assert from "node:assert/strict";
import { FakeClock } from "../../io/_fake_clock_test.ts";
import { ListChanges } from "./_list_changes.ts";

/** Returns changes with a clock, and the requests and notifications that came of them. */
function makeChanges({ isReal = true, onLoad = () => {} } = {}) {
  const clock = new FakeClock();
  const loads: string[] = [];
  const messages: string[] = [];
  const reload = (server: string, list: string) => {
    loads.push(`${clock.now()} ${server} ${list}`);
    onLoad();
    return Promise.resolve(isReal);
  };
  const changes = new ListChanges(reload, (list) => void messages.push(list), clock);
  return { changes, clock, loads, told: messages };
}

Deno.test("reports that come together cost one request and one notification", async () => {
  const { changes, clock, loads, told } = makeChanges();
  for (let count = 0; count < 5; count++) {
    changes.note("s", "tools");
    await clock.pass(10);
  }
  assert.deepEqual(loads, []);
  await clock.pass(60_000);
  assert.deepEqual([loads, told], [["100 s tools"], ["tools"]]);
});

Deno.test("an equal list is not reported to clients as a change", async () => {
  const { changes, clock, loads, told } = makeChanges({ isReal: false });
  changes.note("s", "tools");
  await clock.pass(1_000);
  assert.deepEqual([loads.length, told], [1, []]);
});

Deno.test("members of reports reach clients in one notification, also without a change", async () => {
  const clock = new FakeClock();
  const notified: unknown[] = [];
  const notify = (...change: unknown[]) => void notified.push(change);
  const changes = new ListChanges(() => Promise.resolve(false), notify, clock);
  changes.note("s", "tools", { params: { a: 1, b: 1 } });
  changes.note("s", "tools", { params: { b: 2 }, message: { c: 3 } });
  await clock.pass(1_000);
  changes.note("s", "tools");
  await clock.pass(1_000);
  assert.deepEqual(notified, [["tools", { params: { a: 1, b: 2 }, message: { c: 3 } }]]);
});

Deno.test("members of many reports are not collected without a limit", async () => {
  const clock = new FakeClock();
  const notified: unknown[] = [];
  const notify = (...change: unknown[]) => void notified.push(change);
  const changes = new ListChanges(() => Promise.resolve(true), notify, clock);
  const long = "x".repeat(100_000);
  changes.note("s", "tools", { params: { long } });
  changes.note("s", "tools", { params: { last: true } });
  await clock.pass(1_000);
  assert.deepEqual(notified, [["tools", { params: { last: true } }]]);
});

Deno.test("each list of each server waits on its own", async () => {
  const { changes, clock, loads } = makeChanges();
  changes.note("s", "tools");
  await clock.pass(50);
  changes.note("s", "prompts");
  changes.note("t", "tools");
  await clock.pass(1_000);
  assert.deepEqual(loads, ["100 s tools", "150 s prompts", "150 t tools"]);
});

Deno.test("a list that keeps changing is requested after twice the time, up to 30 s", async () => {
  const { changes, clock, loads } = makeChanges();
  for (let ms = 0; ms < 200_000; ms += 50) {
    changes.note("s", "tools");
    await clock.pass(50);
  }
  const at = loads.map((load) => Number(load.split(" ")[0]));
  const waits = at.map((ms, index) => ms - (at[index - 1] ?? 0));
  assert.deepEqual(waits.slice(0, 9), [100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600]);
  assert.ok(waits.length > 10 && waits.slice(9).every((wait) => wait === 30_000), `${waits}`);
});

Deno.test("after a minute without a report, the next one waits as the first", async () => {
  const { changes, clock, loads } = makeChanges();
  changes.note("s", "tools");
  await clock.pass(1_000);
  changes.note("s", "tools");
  await clock.pass(60_000);
  assert.deepEqual(loads, ["100 s tools", "1200 s tools"]);
  await clock.pass(1_000);
  changes.note("s", "tools");
  await clock.pass(1_000);
  assert.equal(loads[2], "62100 s tools");
});

Deno.test("a report that comes while the list is loaded has it loaded again", async () => {
  let isFirst = true;
  const { changes, clock, loads } = makeChanges({
    onLoad: () => {
      if (isFirst) changes.note("s", "tools");
      isFirst = false;
    },
  });
  changes.note("s", "tools");
  await clock.pass(1_000);
  assert.deepEqual(loads, ["100 s tools", "200 s tools"]);
});

Deno.test("nothing is requested after the end", async () => {
  const { changes, clock, loads } = makeChanges();
  changes.note("s", "tools");
  changes[Symbol.dispose]();
  await clock.pass(1_000);
  assert.deepEqual(loads, []);
});

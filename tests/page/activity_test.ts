/**
 * The calls on the page: many of them, new ones, filters, and the story of one.
 *
 * @module
 */

import assert from "node:assert/strict";
import type { CallRow } from "../../src/control/api.ts";
import { until } from "../kit/wait.ts";
import { button, faultsOf, field, openPage, show, textOf } from "./page_scene.ts";
import { callRows, NOW, SHOP, STATE } from "./recorded_values.ts";

const ROWS = "document.querySelectorAll('.long .row').length";
const FIRST = "document.querySelector('.long .row .what').textContent";

Deno.test("a list of 10,000 calls keeps few rows in the document, and scrolls to its end", async () => {
  await using scene = await openPage({ ...STATE, waiting: [] });
  const { server, page } = scene;
  const all = callRows(10_000);
  const requested: unknown[] = [];
  server.answers.set("/api/calls", (query: Readonly<Record<string, string>>) => {
    requested.push(query);
    const { before = "", limit = "" } = query;
    const older = before === "" ? all : all.filter(({ at }) => at < Number(before));
    const calls = older.slice(0, Number(limit));
    return { calls, more: calls.length < older.length };
  });
  await show(page, "#/activity", "Activity");
  await page.until(`${ROWS} > 10`);
  while (!(await textOf(page)).includes("10,000 calls")) {
    await page.value("document.querySelector('.rows').scrollTop = 1e9");
    await page.until("!document.body.innerText.includes('Loading…')");
  }
  assert.equal(requested.length, 20);
  for (let at = 0; at < 40; at++) {
    await page.value(`document.querySelector('.rows').scrollTop = ${at * 8_000}`);
    await page.until(`[...document.querySelectorAll('.long .row')].some((one) =>
      Math.abs(Number(one.dataset.at) - ${Math.floor(at * 8_000 / 34)}) < 2)`);
    assert.ok(await page.value(ROWS) < 80, String(await page.value(ROWS)));
  }
  assert.ok(await page.value("document.querySelectorAll('*').length") < 1_500);
  await page.value("document.querySelector('.rows').scrollTop = 1e9");
  await page.until("document.querySelector('.long .row[data-at=\"9999\"]') !== null");
  assert.deepEqual(faultsOf(page), []);
});

Deno.test("new calls do not move rows under the pointer or the focus", async () => {
  await using scene = await openPage({ ...STATE, waiting: [] });
  const { server, page } = scene;
  await show(page, "#/activity", "Activity");
  await page.until(`${ROWS} === 20`);
  const fresh = (id: string, state: CallRow["state"]): CallRow => ({
    ...{ id, workspace: SHOP, process: "p1", at: NOW, server: "new", tool: id, state },
  });
  server.send({ type: "call", call: fresh("one", "running") });
  await page.until(`${FIRST} === "new:one"`);
  await page.hover("document.querySelectorAll('.long .row')[3]");
  server.send({ type: "call", call: fresh("two", "running") });
  server.send({ type: "call", call: { ...fresh("one", "done"), ms: 7 } });
  await page.until(`${button("Show 1 new call")} !== undefined`);
  assert.equal(await page.value(FIRST), "new:one");
  // A row that is shown gets its new state at once.
  await page.until("document.querySelector('.long .row .state').textContent.includes('done')");
  await page.hover("document.querySelector('h1')");
  await page.until(`${FIRST} === "new:two"`);
  await page.value("document.querySelector('.long .row a').focus()");
  server.send({ type: "call", call: fresh("three", "running") });
  await page.until(`${button("Show 1 new call")} !== undefined`);
  await page.press("ArrowDown");
  await page.until("document.activeElement.textContent === 'new:one'");
  await page.click(button("Show 1 new call"));
  await page.until(`${FIRST} === "new:three"`);
});

Deno.test("the last calls of the first view stay under the pointer", async () => {
  await using scene = await openPage({ ...STATE, waiting: [] });
  const { server, page } = scene;
  const first = "document.querySelector('.calls .row .what').textContent";
  await page.hover("document.querySelectorAll('.calls .row')[2]");
  const call: CallRow = { ...callRows(1)[0] as CallRow, id: "new", server: "new", tool: "one" };
  server.change({ calls: [call, ...STATE.calls.slice(0, 19)] });
  await page.until(`${button("Show 1 new call")} !== undefined`);
  assert.equal(await page.value(first), "github:list_issues");
  await page.hover("document.querySelector('h1')");
  await page.until(`${first} === "new:one"`);
});

Deno.test("filters reach the server, and a running call of its story can be cancelled", async () => {
  await using scene = await openPage({ ...STATE, waiting: [] });
  const { server, page } = scene;
  const requested: Readonly<Record<string, string>>[] = [];
  const running: CallRow = { ...callRows(1)[0] as CallRow, id: "long", state: "running" };
  server.answers.set("/api/calls", (query: Readonly<Record<string, string>>) => {
    requested.push(query);
    return { calls: [running], more: false };
  });
  server.answers.set("/api/call GET", { call: running, steps: [], children: [] });
  await show(page, "#/activity", "Activity");
  await page.fill(field("text"), "issue");
  await until(() => requested.some(({ text }) => text === "issue"));
  await page.until(`${ROWS} === 1`);
  await page.click("document.querySelector('.long .row a')");
  await page.until(`${button("Cancel this call")} !== undefined`);
  await page.click(button("Cancel this call"));
  await until(() => server.actions.length === 1);
  assert.deepEqual(server.actions[0]?.body, { process: "p1", call: "long" });
});

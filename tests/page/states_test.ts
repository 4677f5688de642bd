/**
 * The states of the page: empty, broken, lost and signed out; further tabs; and changes that need a
 * word or a second look.
 *
 * @module
 */

import assert from "node:assert/strict";
import { until } from "../kit/wait.ts";
import { Refusal } from "./fake_page.ts";
import {
  button,
  element,
  faultsOf,
  field,
  isActive,
  openPage,
  show,
  textOf,
} from "./page_scene.ts";
import { BLOG, EMPTY_STATE, SHOP, STATE } from "./recorded_values.ts";

Deno.test("an empty home leads to the first client, servers and calls", async () => {
  await using scene = await openPage(EMPTY_STATE);
  const { server, page } = scene;
  assert.match(await textOf(page), /Nothing waits[^]*pml init[^]*No calls yet/);
  const workspace = { root: SHOP, name: "shop", trust: "trusted", isPaused: false };
  server.change({ workspaces: [{ ...workspace, servers: [], problems: [] }] });
  await page.until(`${element("a", "Import the servers of a client")} !== undefined`);
  await page.click(element("a", "Import the servers of a client"));
  await page.until(`${field("client")}?.options?.length === 2`);
  await page.value(
    `${field("client")}.value = "cursor"; ${field("client")}.dispatchEvent(new Event("change"))`,
  );
  const plan = "[...document.querySelectorAll('button')].filter((one) => one.textContent === " +
    "'Show the plan')[1]";
  await page.until(isActive(plan));
  await page.click(plan);
  await page.until(`${button("Make this change")} !== undefined`);
  assert.deepEqual(server.actions[0]?.body, { workspace: SHOP, client: "cursor" });
  assert.equal(await page.value(isActive(button("Make this change"))), false);
  await page.fill(field("word"), "add");
  await page.value(
    `${field("time:set_alarm")}.value = "deny";` +
      `${field("time:set_alarm")}.dispatchEvent(new Event("change"))`,
  );
  await page.until(isActive(button("Make this change")));
  await page.click(button("Make this change"));
  await until(() => server.actions.length === 2);
  assert.deepEqual(server.actions[1]?.body, {
    plan: "plan1",
    tools: [
      { server: "time", tool: "get_current_time", decision: "allow" },
      { server: "time", tool: "set_alarm", decision: "deny" },
    ],
    word: "add",
  });
});

Deno.test("problems are shown with their place, and the page reports a process that ended", async () => {
  await using scene = await openPage({ ...STATE, journalProblem: "permission denied" });
  const { server, page } = scene;
  const text = await textOf(page);
  assert.match(text, /blog\/\.pml\.json:14/);
  assert.match(text, /permission denied/);
  assert.ok(text.includes(STATE.hidden[0]?.reason ?? "?"));
  // The banner stays for 30 seconds.
  await page.value(`void (globalThis.setTimeout = ((own) => (run, ms) =>
    own(run, ms === 30_000 ? 1_000 : ms))(setTimeout))`);
  server.send({ type: "ended", process: "p1" });
  await page.until("document.querySelector('.banner') !== null");
  assert.match(await textOf(page), /pml stdio \(process 4711\) of shop has ended/);
  await page.until("document.querySelector('.banner') === null");
  await show(page, "#/servers", "Servers");
  assert.match(await textOf(page), /npm error code E404/);
});

Deno.test("a lost server turns all actions off until it is back", async () => {
  await using scene = await openPage();
  const { server, page } = scene;
  await page.until(isActive(button("Allow once")));
  server.stopStreams();
  await page.until("document.querySelector('[role=alert] strong') !== null");
  assert.equal(await page.value(isActive(button("Allow once"))), false);
  assert.equal(await page.value(isActive(button("Pause"))), false);
  await page.click(button("Pause"));
  assert.equal(server.actions.length, 0);
  server.startStreams();
  await page.until(isActive(button("Allow once")));
  await page.click(button("Pause"));
  await until(() => server.actions.length === 1);
  assert.deepEqual(server.actions[0]?.body, { workspace: SHOP });
});

Deno.test("a reload and a second tab need no link, and an ended sign-in stops both", async () => {
  await using scene = await openPage();
  const { server, page, chromium } = scene;
  assert.equal(await page.value("location.hash"), "#/overview");
  assert.equal(await page.value("history.length"), 2);
  await page.loading(() => page.send("Page.reload"));
  await page.until("document.querySelector('.question') !== null");
  const second = await chromium.page(server.origin);
  await second.go("/");
  await second.until("document.querySelector('.question') !== null");
  server.change({ waiting: [] });
  for (const tab of [page, second]) await tab.until("document.title === 'PML'");
  server.signOut();
  for (const tab of [page, second]) {
    await tab.until("document.querySelector('h1').textContent.startsWith('Sign in')");
    assert.match(await textOf(tab), /pml page/);
  }
  assert.equal(await page.value("localStorage.getItem('pml-page-token')"), null);
});

Deno.test("the page reports a link that was used, and does not sign in", async () => {
  await using scene = await openPage();
  const { server, chromium } = scene;
  const second = await chromium.page(server.origin);
  await second.go("/#used");
  await second.until("document.querySelector('h1')?.textContent.startsWith('Sign in')");
  assert.match(await textOf(second), /was used before/);
});

Deno.test("a change that needs a word asks for it, and a workspace is chosen", async () => {
  await using scene = await openPage();
  const { server, page } = scene;
  server.answers.set(
    "/api/rules/remove",
    ({ word }: Readonly<Record<string, unknown>>) =>
      word === "remove"
        ? { done: true, text: "Removed github:list_*", undo: "pml allow 'github:list_*'" }
        : new Refusal(400, { code: "WORD_NEEDED", message: "It is wide", hint: "remove" }),
  );
  await show(page, "#/rules", "Rules");
  await page.until(`${button("Remove")} !== undefined`);
  await page.click(button("Remove"));
  await page.until(`${field("word")} !== null`);
  await page.fill(field("word"), "remove");
  await page.until(isActive(button("Remove")));
  await page.click(button("Remove"));
  await page.until("document.querySelector('.notice') !== null");
  assert.match(await textOf(page), /Removed github:list_\*[^]*pml allow/);
  await page.value(
    `${field("workspace")}.value = ${JSON.stringify(BLOG)};` +
      `${field("workspace")}.dispatchEvent(new Event("change"))`,
  );
  await show(page, "#/servers", "Servers");
  await page.until("!document.body.innerText.includes('/home/ada/shop')");
  assert.deepEqual(faultsOf(page).filter((one) => !one.includes("status of 400")), []);
});

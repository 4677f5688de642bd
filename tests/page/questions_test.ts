/**
 * Questions on the page: their answers, and the guards against answers by accident.
 *
 * @module
 */

import assert from "node:assert/strict";
import { until } from "../kit/wait.ts";
import { button, field, isActive, openPage, show, textOf } from "./page_scene.ts";
import { QUESTION, SHOP, STATE, TOOL, TRUST } from "./recorded_values.ts";

Deno.test("a question is answered with its reply, and the focus is then on no button", async () => {
  await using scene = await openPage();
  const { server, page } = scene;
  assert.match(await textOf(page), /Waiting \(1\)[^]*The basket loses its items/);
  assert.equal(await page.value("document.title"), "(1) PML");
  await page.until(isActive(button("Allow for this session")));
  await page.click(button("Allow for this session"));
  await until(() => server.actions.length === 1);
  const { id, where, workspace, process } = QUESTION;
  assert.deepEqual(server.actions[0]?.body, { id, where, workspace, process, reply: "session" });
  await page.until("document.querySelector('h1').textContent === 'Nothing waits'");
  assert.equal(await page.value("document.activeElement.id"), "waiting");
});

/** How long a button is inactive after its question appears or moves, in milliseconds. */
const INACTIVE_MS = 1_000;

/**
 * Runs a test that clicks on inactive buttons. Runs it again, twice at most, if it failed after the
 * buttons had become active, because the machine is busy. `begin` is called when they become inactive.
 */
async function whileInactive(run: (begin: () => void) => Promise<void>): Promise<void> {
  for (let tries = 1;; tries++) {
    let since = performance.now();
    try {
      return await run(() => since = performance.now());
    } catch (error) {
      if (performance.now() - since < INACTIVE_MS || tries === 3) throw error;
    }
  }
}

Deno.test("a click in the first second after a question appears or moves answers nothing", async () => {
  await whileInactive(async (begin) => {
    await using scene = await openPage({ ...STATE, waiting: [] });
    const { server, page } = scene;
    begin();
    server.change({ waiting: [QUESTION] });
    await page.until(`${button("Allow once")} !== undefined`);
    await page.click(button("Allow once"));
    await page.press("Enter");
    await page.press("Space");
    assert.equal(await page.value(`${isActive(button("Allow once"))}`), false);
    assert.equal(server.actions.length, 0);
    assert.match(await textOf(page), /Not answered: the question/);
    await page.until(isActive(button("Allow once")));
    // A banner above the question moves it.
    begin();
    server.send({ type: "ended", process: "p1" });
    await page.until("document.querySelector('.banner') !== null");
    await page.until(`!(${isActive(button("Allow once"))})`);
    await page.click(button("Allow once"));
    assert.equal(server.actions.length, 0);
    await page.until(isActive(button("Allow once")));
    await page.click(button("Allow once"));
    await until(() => server.actions.length === 1);
  });
});

Deno.test("a click that brings the window to the front answers nothing, and the page says so", async () => {
  await using scene = await openPage({ ...STATE, waiting: [QUESTION] });
  const { server, page } = scene;
  await page.until(isActive(button("Allow once")));
  await page.value("dispatchEvent(new Event('focus'))");
  await page.click(button("Allow once"));
  await page.until("document.querySelector('.notice')?.innerText.includes('came to the front')");
  assert.equal(server.actions.length, 0);
});

Deno.test("a question without lasting answers shows why", async () => {
  const whyOnce = "the workspace file is not trusted (`pml trust`)";
  await using scene = await openPage({ ...STATE, waiting: [{ ...QUESTION, whyOnce }] });
  assert.ok((await textOf(scene.page)).includes(whyOnce));
});

Deno.test("a new question comes after the others, and an answered one moves no answer to the pointer", async () => {
  await using scene = await openPage({ ...STATE, waiting: [QUESTION] });
  const { server, page } = scene;
  const second = { ...QUESTION, id: "b2", tool: "close_issue", askedAt: QUESTION.askedAt - 9_000 };
  server.change({ waiting: [second, QUESTION] });
  await page.until("document.querySelectorAll('.question').length === 2");
  const labels = "[...document.querySelectorAll('.question')].map((one) => one.ariaLabel)";
  assert.deepEqual(await page.value(labels), [
    "Question: github:create_issue",
    "Question: github:close_issue",
  ]);
  await page.until(isActive(button("Allow once")));
  await page.click(button("Allow once"));
  await page.until("document.querySelectorAll('.question').length === 1");
  // The same place has a button of the other question now.
  await page.click(button("Allow once"));
  assert.equal(server.actions.length, 1);
});

Deno.test("an answer with a word requires it, and a repeated key answers nothing", async () => {
  await using scene = await openPage({ ...STATE, waiting: [TRUST, QUESTION] });
  const { server, page } = scene;
  await page.until(isActive(button("Not now")));
  assert.equal(await page.value(isActive(button("Trust this file"))), false);
  await page.click(button("Trust this file"));
  await page.fill(field("word"), "trus");
  assert.equal(await page.value(isActive(button("Trust this file"))), false);
  await page.type("t");
  await page.press("Enter");
  await page.until(isActive(button("Trust this file")));
  await page.value(`${button("Allow once")}.focus()`);
  const key = { type: "keyDown", key: "Enter", code: "Enter", windowsVirtualKeyCode: 13 };
  await page.send("Input.dispatchKeyEvent", { ...key, text: "\r", autoRepeat: true });
  assert.equal(server.actions.length, 0);
  await page.click(button("Trust this file"));
  await until(() => server.actions.length === 1);
  assert.equal(server.actions[0]?.body.word, "trust");
});

Deno.test("the keyboard alone reaches and answers a question", async () => {
  await using scene = await openPage();
  const { server, page } = scene;
  await page.until(isActive(button("Refuse")));
  await page.press("Tab");
  assert.equal(await page.value("document.activeElement.textContent"), "Skip to the content");
  await page.press("Enter");
  assert.equal(await page.value("document.activeElement.id"), "main");
  for (let at = 0; at < 4; at++) await page.press("Tab");
  assert.equal(await page.value("document.activeElement.textContent"), "Refuse");
  await page.press("Enter");
  await until(() => server.actions.length === 1);
  assert.equal(server.actions[0]?.body.reply, "no");
});

Deno.test("a call that the page makes shows its question, and its number keeps all digits", async () => {
  await using scene = await openPage({ ...STATE, waiting: [] });
  const { server, page } = scene;
  const answered = Promise.withResolvers<unknown>();
  server.answers.set("/api/call POST", () => answered.promise);
  const address = new URLSearchParams({ workspace: SHOP, server: "github", tool: TOOL.id });
  await show(page, `#/tools?${address}`, "Tools");
  await page.until(`${field("owner")} !== null`);
  await page.click(button("Call"));
  assert.match(await textOf(page), /is required/);
  await page.fill(field("owner"), "acme");
  await page.fill(field("repo"), "shop");
  await page.fill(field("title"), 'A "quoted" title');
  await page.fill(field("milestone"), "9007199254740993");
  await page.click(button("Call"));
  await until(() => server.actions.length === 1);
  server.change({ waiting: [QUESTION] });
  await page.until("document.querySelector('.try .question') !== null");
  answered.resolve({ isError: false, ms: 12, content: [{ type: "text", text: "issue 7" }] });
  await page.until("document.querySelector('.answer') !== null");
  assert.match(await textOf(page), /done[^]*issue 7/);
  const [{ text = "" } = {}] = server.actions;
  assert.ok(text.includes('"milestone":9007199254740993'), text);
  assert.ok(text.includes('"draft":false'), text);
});

/**
 * Texts of attackers in every field that the page shows.
 *
 * @module
 */

import assert from "node:assert/strict";
import type { CallRow, PageState } from "../../src/control/api.ts";
import type { Page } from "../kit/chromium.ts";
import { button, faultsOf, field, openPage, show } from "./page_scene.ts";
import { HOSTILE_TEXTS } from "./hostile_texts.ts";
import * as values from "./recorded_values.ts";

/** Members whose values are no texts of others. */
const FIXED = ["id", "where", "reply", "state", "effect", "rule", "command", "type", "actions"];

/** Returns a value with hostile texts in place of all of its texts. */
function hostile<T>(value: T, next: () => string): T {
  if (typeof value === "string") return next() as T;
  if (Array.isArray(value)) return value.map((one) => hostile(one, next)) as T;
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, one]) =>
    FIXED.includes(key) && typeof one === "string" || key === "actions"
      ? [key, one]
      : [key, hostile(one, next)]
  );
  return Object.fromEntries(entries);
}

/** Asserts that no text of an attacker became an element or an invisible character. */
async function assertHarmless(page: Page, where: string): Promise<void> {
  const elements = await page.value(
    `[...document.querySelectorAll("#page :is(script, main img, iframe, object, base, meta, link, " +
      "style, svg, math, template, form[action], a[href^=javascript], [onfocus], [onerror]), " +
      "body > :not(#page)")].map((one) => one.outerHTML)`,
  );
  assert.deepEqual(elements, [], where);
  const hidden = await page.value(
    String.raw`[...document.getElementById("page").innerText.matchAll(
      /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u200e\u200f\u202a-\u202e\u2028\u2029\u2060` +
      String.raw`\u2066-\u2069\ufeff\u{e0000}-\u{e007f}]/gu)].map(([one]) => one.codePointAt(0))`,
  );
  assert.deepEqual(hidden, [], where);
  const sideways = await page.value(
    "document.documentElement.scrollWidth - document.documentElement.clientWidth",
  );
  assert.equal(sideways, 0, where);
}

/** Returns a function that returns each text in turn. */
function hostileTexts(): () => string {
  let at = 0;
  return () => HOSTILE_TEXTS[at++ % HOSTILE_TEXTS.length] ?? "";
}

/** The root of the only workspace. */
const ROOT = "/<b>home</b>\u202e";

function hostileState(next: () => string): PageState {
  const state = hostile(values.STATE, next);
  const servers = HOSTILE_TEXTS.map((name, index) => ({
    ...hostile(values.SERVERS[index % 5], next),
    name,
  }));
  const workspaces = [{ ...hostile(values.STATE.workspaces[1], next), root: ROOT, servers }];
  const processes = values.STATE.processes.map((one) => ({
    ...hostile(one, next),
    workspace: ROOT,
  }));
  const waiting = HOSTILE_TEXTS.map((text, index) => ({
    ...hostile(values.QUESTION, next),
    ...{ id: `q${index}`, server: text, tool: text, text: `${text}\n  ${text}\n  ${text}` },
  }));
  const calls = HOSTILE_TEXTS.map((text, index) => ({
    ...hostile(values.STATE.calls[0], next),
    ...{ id: `c${index}`, workspace: ROOT, server: text, tool: text, client: text, code: text },
  }));
  return { ...state, workspaces, processes, waiting, calls } as PageState; // only texts differ
}

function hostileAnswers(
  next: () => string,
  calls: readonly CallRow[],
): Readonly<Record<string, unknown>> {
  const tools = HOSTILE_TEXTS.map((id) => ({ id, description: id, rule: "ask" }));
  const properties = Object.fromEntries(
    HOSTILE_TEXTS.map((name) => [name, { type: "string", description: name, enum: [name] }]),
  );
  return {
    "/api/calls": { calls, more: false },
    "/api/call GET": hostile(values.STORY, next),
    "/api/tools": tools,
    "/api/search": { ...hostile(values.SEARCH, next), hits: tools },
    "/api/tool": {
      ...hostile(values.TOOL, next),
      ...{ id: "a:b", rule: "deny", inputSchema: { properties }, why: HOSTILE_TEXTS.join("\n") },
      difference: HOSTILE_TEXTS.map((text) => `+${text}`).join("\n"),
    },
    "/api/context": hostile(values.COSTS, next),
    "/api/rules": HOSTILE_TEXTS.map((rule) => ({ ...values.RULES[0], rule, from: rule })),
    "/api/settings": hostile(values.SETTINGS, next),
    "/api/call POST": {
      ...{ isError: true, ms: 1, structuredContent: HOSTILE_TEXTS },
      content: HOSTILE_TEXTS.map((text) => ({ type: text, text })),
      error: { code: HOSTILE_TEXTS[0], message: HOSTILE_TEXTS[1], hint: HOSTILE_TEXTS[2] },
    },
    "/api/server": { done: true, text: HOSTILE_TEXTS[0], undo: HOSTILE_TEXTS[1] },
  };
}

Deno.test("hostile texts run nothing, load nothing, and hide nothing in all views", async () => {
  assert.equal(HOSTILE_TEXTS.length, 40);
  const next = hostileTexts();
  const state = hostileState(next);
  await using scene = await openPage(state);
  const { server, page } = scene;
  const answers = hostileAnswers(next, state.calls);
  for (const [path, answer] of Object.entries(answers)) server.answers.set(path, answer);
  await page.look({ width: 360 });
  await assertHarmless(page, "overview");
  assert.ok(await page.value("document.querySelectorAll('.question').length") === 40);
  assert.ok(await page.value("document.querySelectorAll('mark').length") > 40);
  const tool = new URLSearchParams({ workspace: ROOT, server: "a", tool: "a:b" });
  const views = {
    "#/servers": "Servers",
    [`#/tools?${tool}`]: "Tools",
    [`#/activity?${new URLSearchParams({ workspace: ROOT, call: "c1" })}`]: "Activity",
    "#/context": "Context",
    "#/rules": "Rules",
  };
  for (const [address, heading] of Object.entries(views)) {
    await show(page, address, heading);
    await page.until("!document.body.innerText.includes('Loading…')");
    await assertHarmless(page, address);
  }
  await show(page, `#/tools?${tool}`, "Tools");
  await page.until(`${field("query")} !== null && ${button("As JSON")} !== undefined`);
  await page.fill(field("query"), "x");
  await page.click(button("As JSON"));
  await page.click(button("Call"));
  await page.until("document.querySelector('.answer') !== null");
  await assertHarmless(page, "an answer");
  const pictures = page.requested.filter((one) => one.startsWith("data:"));
  assert.equal(new Set(pictures).size, 1);
  assert.deepEqual(faultsOf(page), []);
});

/**
 * Accessibility and layout of the page, in both themes and three widths.
 *
 * @module
 */

import axe from "axe-core/axe.min.js" with { type: "text" };
import assert from "node:assert/strict";
import type { Page } from "../kit/chromium.ts";
import { faultsOf, openPage, type PageScene, show } from "./page_scene.ts";
import { EMPTY_STATE, QUESTION, SHOP, STATE, TOOL, TRUST } from "./recorded_values.ts";

const WIDTHS = [360, 800, 1400];
const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];
const IN_SHOP = { workspace: SHOP, server: "github" };
const VIEWS: Readonly<Record<string, string>> = {
  "#/overview": "",
  [`#/servers?add=${encodeURIComponent(SHOP)}`]: "Servers",
  "#/tools": "Tools",
  [`#/tools?${new URLSearchParams({ ...IN_SHOP, tool: TOOL.id })}`]: "Tools",
  [`#/activity?${new URLSearchParams({ workspace: SHOP, call: "call3" })}`]: "Activity",
  "#/context": "Context",
  "#/rules": "Rules",
};

/** Asserts that axe finds nothing, and that nothing is wider than the page. */
async function assertGood(page: Page, where: string): Promise<void> {
  const run = `axe.run({ runOnly: ${JSON.stringify(TAGS)}, resultTypes: ["violations"] })`;
  const { result } = await page.send("Runtime.evaluate", {
    expression: `${run}.then(({ violations }) => violations.map(({ id, nodes }) =>
      [id, ...nodes.map(({ html, failureSummary }) => html.slice(0, 200) + failureSummary)]))`,
    ...{ awaitPromise: true, returnByValue: true },
  });
  assert.deepEqual(result.value, [], where);
  const sideways = await page.value(
    "document.documentElement.scrollWidth - document.documentElement.clientWidth",
  );
  assert.equal(sideways, 0, where);
}

/** Looks at all views in all widths and both themes. */
async function look({ page }: PageScene, views = VIEWS): Promise<void> {
  await page.send("Runtime.evaluate", { expression: axe });
  for (const [address, heading] of Object.entries(views)) {
    await show(page, address, heading);
    await page.until("!document.body.innerText.includes('Loading…')");
    await page.value(
      "document.querySelectorAll('details').forEach((one) => one.open = true)",
    );
    for (const width of WIDTHS) {
      for (const scheme of ["light", "dark"] as const) {
        await page.look({ width, scheme });
        await assertGood(page, `${address}, ${width} px, ${scheme}`);
      }
    }
  }
  assert.deepEqual(faultsOf(page), []);
}

Deno.test("axe finds no fault of level A or AA in a full home", async () => {
  await using scene = await openPage({ ...STATE, waiting: [QUESTION, TRUST] });
  scene.server.send({ type: "ended", process: "p2" });
  await look(scene);
});

Deno.test("axe finds no fault of level A or AA in an empty home, and without a sign-in", async () => {
  await using scene = await openPage(EMPTY_STATE);
  const { server, page } = scene;
  await look(scene, { "#/overview": "Nothing waits", "#/servers": "Servers", "#/tools": "Tools" });
  server.signOut();
  await page.until("document.querySelector('h1').textContent.startsWith('Sign in')");
  await assertGood(page, "no sign-in");
});

/**
 * Tests a page at a port where another program left a service worker.
 *
 * @module
 */

import assert from "node:assert/strict";
import { type PageApi, PageServer } from "../../src/page/server.ts";
import { openChromium, type Page } from "../kit/chromium.ts";
import { textOf } from "./page_scene.ts";

/** A worker that passes every request on, and can read it. */
const WORKER = `
addEventListener("install", () => skipWaiting());
addEventListener("activate", (event) => event.waitUntil(clients.claim()));
addEventListener("fetch", (event) => event.respondWith(fetch(event.request)));
`;
const SITE = `<!doctype html><link rel="icon" href="data:,"><script>
navigator.serviceWorker.register("/sw.js");
localStorage.setItem("left", "1");
</script>`;

async function leave(page: Page): Promise<void> {
  await page.loading(() => page.send("Page.navigate", { url: "about:blank" }));
}

/** Visits a site that leaves a worker. Returns its port, which is free again. */
async function leaveWorker(open: (origin: string) => Promise<Page>): Promise<number> {
  const site = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, ({ url }) => {
    const isWorker = new URL(url).pathname === "/sw.js";
    const type = isWorker ? "text/javascript" : "text/html";
    return new Response(isWorker ? WORKER : SITE, { headers: { "content-type": type } });
  });
  const { port } = site.addr;
  const page = await open(`http://127.0.0.1:${port}`);
  await page.go("/");
  await page.until("navigator.serviceWorker.controller !== null");
  await leave(page);
  await site.shutdown();
  return port;
}

Deno.test("the page signs in nowhere while a service worker of another program sees it", async () => {
  await using chromium = await openChromium();
  const port = await leaveWorker(chromium.page);
  const events: string[] = [];
  const api: PageApi = {
    read: () => undefined,
    act: () => undefined,
    follow: () => Promise.resolve(new DisposableStack()),
    record: (event) => void events.push(event),
  };
  await using server = await PageServer.open(api, port);
  const isRefused =
    `document.querySelector("[role=alert]")?.textContent.includes("service worker")`;
  const page = await chromium.page(server.origin);
  const link = new URL(server.link());
  await page.go(`/${link.hash}`);
  await page.until(isRefused);
  assert.match(await textOf(page), /--port/);
  assert.equal(await page.value("location.hash"), "#/overview");
  assert.deepEqual(events, []);
  assert.equal(await page.value("localStorage.getItem('left')"), null);
  await leave(page);
  // Neither the worker nor its data is left, and the same link still works.
  const next = await chromium.page(server.origin);
  await next.go(`/${link.hash}`);
  await next.until("localStorage.getItem('pml-page-token') !== null");
  assert.equal(await next.value("navigator.serviceWorker.controller"), null);
  assert.deepEqual(events, ["page opened"]);
});

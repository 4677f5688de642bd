/**
 * Opens the page of a `FakePage` in a browser, and names its elements.
 *
 * @module
 */

import type { PageState } from "../../src/control/api.ts";
import { type Chromium, openChromium, type Page } from "../kit/chromium.ts";
import { FakePage } from "./fake_page.ts";
import { STATE } from "./recorded_values.ts";

/** A browser with the page of a server. */
export interface PageScene extends AsyncDisposable {
  readonly server: FakePage;
  readonly page: Page;
  readonly chromium: Chromium;
}

/** Opens the page by its link. */
export async function openPage(state: PageState = STATE): Promise<PageScene> {
  const server = new FakePage(state);
  const chromium = await openChromium();
  const page = await chromium.page(server.origin);
  await page.go(server.link);
  await page.until("document.querySelector('h1') !== null");
  const close = async () => {
    await chromium[Symbol.asyncDispose]();
    await server[Symbol.asyncDispose]();
  };
  return { server, page, chromium, [Symbol.asyncDispose]: close };
}

/** Returns an expression for the first element of a kind with a text. */
export function element(selector: string, text: string): string {
  return `[...document.querySelectorAll(${JSON.stringify(selector)})]` +
    `.find((one) => one.textContent.trim().startsWith(${JSON.stringify(text)}))`;
}

/** Returns an expression for a button by its text. */
export function button(text: string): string {
  return element("button", text);
}

/** Returns an expression for a field by its name. */
export function field(name: string): string {
  return `document.querySelector(${JSON.stringify(`[name="${name}"]`)})`;
}

/** Returns an expression that is true if an element takes clicks. */
export function isActive(of: string): string {
  return `${of}?.getAttribute("aria-disabled") === "false"`;
}

/** Shows a view, and waits for its heading. */
export async function show(page: Page, address: string, heading: string): Promise<void> {
  await page.value(`location.hash = ${JSON.stringify(address)}`);
  await page.until(
    `document.querySelector("h1")?.textContent.startsWith(${JSON.stringify(heading)})`,
  );
}

/** Returns the text of the page. */
export async function textOf(page: Page): Promise<string> {
  return String(await page.value("document.body.innerText"));
}

/** Returns the faults of a page without remarks about its own navigation. */
export function faultsOf(page: Page): readonly string[] {
  return page.faults.filter((one) => !one.includes("NavigationEntryMarkedSkippable"));
}

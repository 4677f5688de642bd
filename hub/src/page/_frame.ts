/**
 * Renders a page: its head, the parts of every page, and the headers of its answer.
 *
 * @module
 */

import { ok, type RegistryResponse } from "@casys/pml/registry";
import type { HubStore } from "../store/store.ts";
import { type Html, html } from "./_html.ts";
import { STYLE, STYLE_HASH } from "./_style.ts";

/** The data that pages show. */
export interface PageOptions {
  readonly store: Pick<HubStore, "entry" | "page" | "versions" | "dates" | "latest" | "size">;
  /** The URL that clients configure. */
  readonly url: string;
  /** The key that clients pin, if the hub signs its entries. */
  readonly publicKey?: string | undefined;
  /** Whether readers need a client key. PML sends its key only to the hub of `cloud.url`. */
  readonly needsKey?: boolean;
}

/** The content of a page, without the head and the parts that all pages have. */
export interface PageContent {
  readonly status: 200 | 400 | 404;
  readonly title: string;
  readonly main: Html;
  /** The text of the search field. */
  readonly query?: string;
}

const COMMON = { "x-content-type-options": "nosniff", "referrer-policy": "no-referrer" };
const POLICY = `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; img-src 'self'; ` +
  "form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/** Returns the response with a page. */
export function toResponse(content: PageContent): RegistryResponse {
  const page = ok(new TextEncoder().encode(String(renderFrame(content))), {
    "content-type": "text/html; charset=utf-8",
    "cache-control": "no-cache",
    "vary": "accept",
    "content-security-policy": POLICY,
    ...COMMON,
  });
  const { etag: _, ...headers } = page.headers;
  return content.status === 200 ? page : { ...page, status: content.status, headers };
}

function renderFrame({ title, main, query = "" }: PageContent): Html {
  return html`
    <!doctype html>
    <html lang="en">
      <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>${title} · PML hub</title>
    <link rel="icon" type="image/svg+xml" href="/favicon.svg">
    ${STYLE}
      </head>
      <body>
        <a class="skip" href="#main">Skip to the content</a>
        <header class="top">
          <div class="wide">
            <a class="brand" href="/"><img src="/favicon.svg" alt="" width="24" height="24">PML hub</a>
            <form role="search" action="/search" method="get">
              <label class="unseen" for="q">Search servers and tools</label>
              <input id="q" name="q" type="search" value="${query}" maxlength="500"
                autocomplete="off" placeholder="Search servers and tools">
              <button type="submit">Search</button>
            </form>
          </div>
        </header>
        <main id="main" class="wide" tabindex="-1">
    ${main}
        </main>
        <footer class="wide">
          <p>Publishers wrote the texts on this page. Addresses in them are not links.
    Invisible characters are shown <mark>like&nbsp;this</mark>.</p>
        </footer>
      </body>
    </html>
  `;
}

/** Returns a page with an error and a hint. */
export function problemPage(
  status: 400 | 404,
  { title, why, hint }: { readonly title: string; readonly why: Html; readonly hint: Html },
): PageContent {
  const main = html`
    <div class="problem">
      <h1>${title}</h1>
      <p>${why}</p>
      <p>${hint}</p>
      <p><a class="button" href="/">Newest entries</a></p>
    </div>
  `;
  return { status, title, main };
}

const ICON = html`
  <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">
    <rect width="32" height="32" rx="8" fill="#176b5b" />
    <g fill="none" stroke="#fff" stroke-width="2.6" stroke-linecap="round">
      <circle cx="16" cy="16" r="3.6" />
      <path d="M16 12.4V6M19 18l5.6 3.6M13 18l-5.6 3.6" />
    </g>
  </svg>
`;

/** Returns the response with the icon of the hub. */
export function icon(): RegistryResponse {
  return ok(new TextEncoder().encode(String(ICON)), {
    "content-type": "image/svg+xml",
    "cache-control": "public, max-age=86400",
    "content-security-policy": "default-src 'none'",
    ...COMMON,
  });
}

/** Returns the address of an entry's page, or of a page below it. */
export function pathTo(fqdn: string, version?: string): string {
  return `/entry/${entryName(fqdn, version)}`;
}

/** Returns the address of an entry's data, which programs read. */
export function downloadOf(fqdn: string, version: string): string {
  return `/mcp/${entryName(fqdn, version)}`;
}

function entryName(fqdn: string, version?: string): string {
  const name = encodeURIComponent(fqdn.toWellFormed()).replaceAll("%3A", ":");
  return version === undefined ? name : `${name}@${encodeURIComponent(version.toWellFormed())}`;
}

/** Shows the day of a date. */
export function dateHtml(date: Date): Html {
  const iso = date.toISOString();
  const day = date.toLocaleDateString("en-GB", {
    day: "numeric",
    month: "short",
    year: "numeric",
    timeZone: "UTC",
  });
  return html`<time datetime="${iso}">${day}</time>`;
}

/** Shows an untrusted text with its line breaks, shortened to `max` characters. */
export function untrustedText(text: string, max: number): Html {
  const short = shorten(text, max);
  const lines = short.split(/\r\n?|\n/);
  const breaks = lines.map((line, index) => index === 0 ? html`${line}` : html`<br>${line}`);
  return html`<span class="external">${breaks}</span>`;
}

/** Shortens a text to `max` characters, and appends "…" and its length if it was longer. */
export function shorten(text: string, max: number): string {
  return text.length > max ? `${text.slice(0, max)}… (${text.length} characters)` : text;
}

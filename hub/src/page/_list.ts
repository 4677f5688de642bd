/**
 * The start page, and the page of search results.
 *
 * @module
 */

import type { StoredEntry } from "../store/store.ts";
import {
  dateHtml,
  type PageContent,
  type PageOptions,
  pathTo,
  problemPage,
  untrustedText,
} from "./_frame.ts";
import { type Html, html } from "./_html.ts";
import { viewOf } from "./_manifest.ts";
import { registriesLine } from "./_use.ts";

const LATEST = 20;
const HITS = 50;
const QUERY_MAX = 500;

/** Returns the page with the newest entries. */
export async function homePage(options: PageOptions): Promise<PageContent> {
  const { store } = options;
  const [names, latest] = await Promise.all([store.size(), store.latest(LATEST)]);
  const main = html`<div class="hero"><h1>Servers for your agents</h1>
<p>This hub has ${withNoun(names, "entry", "entries")}. PML finds them once its
<code>.pml.json</code> names the hub:</p>
${registriesLine(options)}</div>
<section aria-labelledby="newest"><h2 id="newest">Newest</h2>
${
    latest.length > 0
      ? hitList(latest)
      : html`<p>The hub is empty. Add the entries of a folder with <code>pml-hub import FOLDER</code>.</p>`
  }</section>`;
  return { status: 200, title: "Newest", main };
}

/** Returns a page of search results, with a link to the next one. */
export async function searchPage(
  query: URLSearchParams,
  { store }: PageOptions,
): Promise<PageContent> {
  const queryText = query.get("q") ?? "";
  const after = query.get("after") ?? "";
  if (queryText.length > QUERY_MAX || after.length > QUERY_MAX) {
    return problemPage(400, {
      title: "This search is too long",
      why: html`A search has at most ${QUERY_MAX} characters.`,
      hint: html`Write a few words of a name, a description or a tool.`,
    });
  }
  const words = queryText.toLowerCase().split(/\s+/).filter((word) => word !== "");
  // The store returns one entry more than the limit if there is a next page.
  const entries = await store.page({ after, words, limit: HITS });
  const hits = entries.slice(0, HITS);
  const last = hits.at(-1)?.fqdn;
  const isAll = words.length === 0;
  const title = isAll ? "All entries" : `Search: ${queryText}`;
  const main = html`<h1>${isAll ? "All entries" : html`Search for ${quotation(queryText)}`}</h1>
<p class="calm">${countText(hits.length, { isMore: entries.length > HITS, after })}</p>
${hits.length > 0 ? html`<h2 class="unseen">Hits</h2>${hitList(hits)}` : noHits(after)}
${
    entries.length > HITS && last !== undefined
      ? html`<p><a class="button" rel="next" href="${
        searchPath(queryText, last)
      }">Next page</a></p>`
      : html``
  }`;
  return { status: 200, title, main, query: queryText };
}

function quotation(text: string): Html {
  return html`<q>${text}</q>`;
}

function searchPath(q: string, after: string): string {
  return `/search?${new URLSearchParams({ q, after })}`;
}

function countText(
  count: number,
  { isMore, after }: { readonly isMore: boolean; readonly after: string },
): Html {
  const start = after === "" ? html`` : html`
    after <span class="external">${after}</span>
  `;
  const more = isMore ? html`. There are more` : html``;
  return html`${withNoun(count, "hit", "hits")}${start}, in the order of names${more}`;
}

function noHits(after: string): Html {
  return after === ""
    ? html`<p>No entry contains all of these words in its name, its description or its tools. Use fewer
words. <a href="/search">All entries</a></p>`
    : html`<p>There are no more entries. <a href="/">Newest entries</a></p>`;
}

function hitList(entries: readonly StoredEntry[]): Html {
  return html`<ul class="hits">${entries.map(hitItem)}</ul>`;
}

function hitItem({ fqdn, version, manifest, created }: StoredEntry): Html {
  const { kind, description, tools } = viewOf(manifest);
  return html`
    <li><h3><a class="external" href="${pathTo(fqdn)}">${fqdn}</a></h3>
    ${description === "" ? html`` : html`<p>${untrustedText(description, 160)}</p>`}
    <p class="facts"><span>${version}</span><span>${kind.title}</span><span>${withNoun(
      tools.length,
      "tool",
      "tools",
    )}</span><span>${dateHtml(created)}</span></p></li>
  `;
}

/** Returns a number with its noun in the singular or plural. */
export function withNoun(count: number, one: string, many: string): string {
  return `${count.toLocaleString("en-GB")} ${count === 1 ? one : many}`;
}

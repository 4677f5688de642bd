/**
 * The start page, and the page of search results.
 *
 * @module
 */

import type { StoredEntry } from "../store/store.ts";
import { dayOf, external, type PageOptions, pathTo, problemPage, type Sheet } from "./_frame.ts";
import { type Html, html } from "./_html.ts";
import { shownOf } from "./_manifest.ts";
import { registriesLine } from "./_use.ts";

const LATEST = 20;
const HITS = 50;
const QUERY_MAX = 500;

/** Returns the page with the newest entries. */
export async function home(options: PageOptions): Promise<Sheet> {
  const { store } = options;
  const [names, latest] = await Promise.all([store.size(), store.latest(LATEST)]);
  const main = html`<div class="hero"><h1>Servers for your agents</h1>
<p>This hub keeps ${counted(names, "entry", "entries")}. PML finds them once its
<code>.pml.json</code> names the hub:</p>
${registriesLine(options)}</div>
<section aria-labelledby="newest"><h2 id="newest">Newest</h2>
${
    latest.length > 0
      ? hits(latest)
      : html`<p>The hub is empty. <code>pml-hub import FOLDER</code> adds the entries of a folder.</p>`
  }</section>`;
  return { status: 200, title: "Newest", main };
}

/** Returns a page of search results, with a link to the next one. */
export async function searchSheet(query: URLSearchParams, { store }: PageOptions): Promise<Sheet> {
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
  const entries = await store.page({ after, words, limit: HITS });
  const firstHits = entries.slice(0, HITS);
  const last = firstHits.at(-1)?.fqdn;
  const isAll = words.length === 0;
  const title = isAll ? "All entries" : `Search: ${queryText}`;
  const main = html`<h1>${isAll ? "All entries" : html`Search for ${quotation(queryText)}`}</h1>
<p class="calm">${counts(firstHits.length, { isMore: entries.length > HITS, after })}</p>
${firstHits.length > 0 ? html`<h2 class="unseen">Hits</h2>${hits(firstHits)}` : nothing(after)}
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

function counts(
  count: number,
  { isMore, after }: { readonly isMore: boolean; readonly after: string },
): Html {
  const all = after === "" ? html`` : html`, after <span class="external">${after}</span>`;
  return isMore
    ? html`The first ${count}${all}, by name`
    : html`${counted(count, "hit", "hits")}${all}, by name`;
}

function nothing(after: string): Html {
  return after === ""
    ? html`<p>Nothing has all of these words in its name, its description or its tools. Fewer words
find more. <a href="/search">All entries</a></p>`
    : html`<p>There is nothing more. <a href="/">Newest entries</a></p>`;
}

function hits(entries: readonly StoredEntry[]): Html {
  return html`<ul class="hits">${entries.map(hit)}</ul>`;
}

function hit({ fqdn, version, manifest, created }: StoredEntry): Html {
  const { kind, description, tools } = shownOf(manifest);
  return html`
    <li><h3><a class="external" href="${pathTo(fqdn)}">${fqdn}</a></h3>
    ${description === "" ? html`` : html`<p>${external(description, 160)}</p>`}
    <p class="facts"><span>${version}</span><span>${kind.title}</span><span>${counted(
      tools.length,
      "tool",
      "tools",
    )}</span><span>${dayOf(created)}</span></p></li>
  `;
}

/** Returns a number with its noun. */
export function counted(count: number, one: string, many: string): string {
  return `${count.toLocaleString("en-GB")} ${count === 1 ? one : many}`;
}

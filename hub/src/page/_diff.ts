/**
 * The page that compares two versions of an entry.
 *
 * @module
 */

import type { StoredEntry } from "../store/store.ts";
import { readable, SHOWN } from "./_code.ts";
import { downloadOf, type PageOptions, pathTo, problemPage, type Sheet } from "./_frame.ts";
import { type Html, html } from "./_html.ts";
import { differences } from "./_lines.ts";
import { type Shown, shownOf } from "./_manifest.ts";
import { sentenceOf } from "./_permissions.ts";
import { compareForm } from "./_versions.ts";

const MOST = 200;

/** Returns the page that compares two versions of a name. */
export async function diffPage(
  fqdn: string,
  { query, store }: { readonly query: URLSearchParams } & Pick<PageOptions, "store">,
): Promise<Sheet> {
  const versions = await store.versions(fqdn);
  const [from = versions[1] ?? "", to = versions[0] ?? ""] = ["from", "to"].map((name) =>
    query.get(name)?.slice(0, MOST)
  );
  const [before, after] = await Promise.all([store.entry(fqdn, from), store.entry(fqdn, to)]);
  const form = compareForm({ fqdn, versions, from, to });
  if (before === undefined || after === undefined) {
    const missing = before === undefined ? from : to;
    return problemPage(404, {
      title: "No such version to compare",
      why: missing === ""
        ? html`<span class="external">${fqdn}</span> has not two versions here.`
        : html`<span class="external">${fqdn}</span> has no version <q>${missing}</q> here.`,
      hint: versions.length > 1 ? form : html`<a href="/search">All entries</a>`,
    });
  }
  const main = html`<p class="crumbs"><a href="${pathTo(fqdn)}">${fqdn}</a></p>
<h1><span class="external">${fqdn}</span> <small class="external">${before.version} → ${after.version}</small></h1>
${form}
${abilities(shownOf(before.manifest), shownOf(after.manifest))}
${toolChanges(shownOf(before.manifest), shownOf(after.manifest))}
${codeChanges(before, after)}
<section aria-labelledby="entry"><h2 id="entry">Entry</h2>
${bounded(pretty(before), pretty(after))}</section>
<p>Download ${
    [before, after].map(({ version }, at) =>
      html`${at === 0 ? "" : " and "}<a href="${downloadOf(fqdn, version)}" download>${version}</a>`
    )
  }</p>`;
  return { status: 200, title: `${fqdn}: ${before.version} and ${after.version}`, main };
}

/** A difference between two versions, with its text. */
interface Item {
  readonly key: string;
  readonly shown: Html;
}

function abilities(before: Shown, after: Shown): Html {
  const items = ({ type, routing, wishes, env, way }: Shown): readonly Item[] => [
    { key: `kind ${type} ${routing}`, shown: html`Kind: ${type}, ${routing}` },
    ...wishes.map((wish) => ({ key: `${wish.kind} ${wish.item}`, shown: sentenceOf(wish) })),
    ...env.map((name) => ({
      key: `key ${name}`,
      shown: html`Asks for the variable <code>${name.slice(0, 200)}</code>`,
    })),
    ...way.map(([what, value]) => ({
      key: `${what} ${value}`,
      shown: html`${what}: <code>${value.slice(0, 2_000)}</code>`,
    })),
  ];
  return html`<section aria-labelledby="may"><h2 id="may">What it may do</h2>
${changes(items(before), items(after))}</section>`;
}

function toolChanges(before: Shown, after: Shown): Html {
  const items = ({ tools }: Shown): readonly Item[] =>
    tools.map(({ name }) => ({ key: name, shown: html`<code>${name.slice(0, 200)}</code>` }));
  const earlier = new Map(before.tools.map((tool) => [tool.name, JSON.stringify(tool.definition)]));
  const changed = after.tools.filter(({ name, definition }) =>
    earlier.has(name) && earlier.get(name) !== JSON.stringify(definition)
  ).map(({ name }) => name);
  const names = changed.slice(0, MOST).map((name, at) =>
    html`${at === 0 ? "" : ", "}<code>${name.slice(0, 200)}</code>`
  );
  return html`<section aria-labelledby="tools"><h2 id="tools">Tools</h2>
${changes(items(before), items(after))}
${changed.length === 0 ? html`` : html`<p>Described anew: ${names}</p>`}</section>`;
}

function changes(before: readonly Item[], after: readonly Item[]): Html {
  const [old, fresh] = [before, after].map((items) => new Set(items.map(({ key }) => key)));
  const added = after.filter(({ key }) => !old?.has(key));
  const removed = before.filter(({ key }) => !fresh?.has(key));
  if (added.length + removed.length === 0) {
    return html`<p class="calm">Nothing was added or removed.</p>`;
  }
  return html`<ul class="changes">
${added.slice(0, MOST).map(({ shown }) => html`<li><ins>Added</ins> ${shown}</li>`)}
${removed.slice(0, MOST).map(({ shown }) => html`<li><del>Removed</del> ${shown}</li>`)}
${[added, removed].some(({ length }) => length > MOST) ? html`<li>and more</li>` : html``}</ul>`;
}

function codeChanges(before: StoredEntry, after: StoredEntry): Html {
  if (before.code === undefined && after.code === undefined) return html``;
  const [from, to] = [before, after].map(readable);
  return html`<section aria-labelledby="code"><h2 id="code">Code</h2>
${bounded(from ?? "", to ?? "")}</section>`;
}

function bounded(from: string, to: string): Html {
  const isLong = [from, to].some(({ length }) => length > SHOWN.bytes);
  return isLong
    ? html`
      <p
        class="warning">It is longer than ${SHOWN.bytes.toLocaleString(
          "en-GB",
        )} characters, and is not compared here. Download both versions.</p>
    `
    : differences(from, to);
}

function pretty({ manifest }: StoredEntry): string {
  return JSON.stringify(manifest, null, 2);
}

/**
 * The page that compares two versions of an entry.
 *
 * @module
 */

import type { StoredEntry } from "../store/store.ts";
import { MAX_SHOWN, readableCode } from "./_code.ts";
import { downloadOf, type PageContent, type PageOptions, pathTo, problemPage } from "./_frame.ts";
import { type Html, html } from "./_html.ts";
import { differences } from "./_lines.ts";
import { type ManifestView, viewOf } from "./_manifest.ts";
import { sentenceOf } from "./_permissions.ts";
import { compareForm } from "./_versions.ts";

/** The maximum number of changes that a list shows. */
const MAX_ITEMS = 200;
/** The maximum number of characters of a version in the query. */
const MAX_VERSION = 200;

/** Returns the page that compares two versions of a name. */
export async function diffPage(
  fqdn: string,
  { query, store }: { readonly query: URLSearchParams } & Pick<PageOptions, "store">,
): Promise<PageContent> {
  const versions = await store.versions(fqdn);
  const [from = versions[1] ?? "", to = versions[0] ?? ""] = ["from", "to"].map((name) =>
    query.get(name)?.slice(0, MAX_VERSION)
  );
  const [before, after] = await Promise.all([store.entry(fqdn, from), store.entry(fqdn, to)]);
  const form = compareForm({ fqdn, versions, from, to });
  if (before === undefined || after === undefined) {
    const missing = before === undefined ? from : to;
    return problemPage(404, {
      title: "No such version to compare",
      why: missing === ""
        ? html`<span class="external">${fqdn}</span> has only one version here.`
        : html`<span class="external">${fqdn}</span> has no version <q>${missing}</q> here.`,
      hint: versions.length > 1 ? form : html`<a href="/search">All entries</a>`,
    });
  }
  const main = html`<p class="crumbs"><a href="${pathTo(fqdn)}">${fqdn}</a></p>
<h1><span class="external">${fqdn}</span> <small class="external">${before.version} → ${after.version}</small></h1>
${form}
${abilityChanges(viewOf(before.manifest), viewOf(after.manifest))}
${toolChanges(viewOf(before.manifest), viewOf(after.manifest))}
${codeChanges(before, after)}
<section aria-labelledby="entry"><h2 id="entry">Entry</h2>
${boundedDifferences(manifestText(before), manifestText(after))}</section>
<p>Download ${
    [before, after].map(({ version }, at) =>
      html`${at === 0 ? "" : " and "}<a href="${downloadOf(fqdn, version)}" download>${version}</a>`
    )
  }</p>`;
  return { status: 200, title: `${fqdn}: ${before.version} and ${after.version}`, main };
}

/** A property of a version. Two versions have the same property if the keys are equal. */
interface Item {
  readonly key: string;
  readonly content: Html;
}

function abilityChanges(before: ManifestView, after: ManifestView): Html {
  const items = (
    { type, routing, permissions, env, launch }: ManifestView,
  ): readonly Item[] => [
    { key: `kind ${type} ${routing}`, content: html`Kind: ${type}, ${routing}` },
    ...permissions.map((permission) => ({
      key: `${permission.kind} ${permission.item}`,
      content: sentenceOf(permission),
    })),
    ...env.map((name) => ({
      key: `key ${name}`,
      content: html`Asks for the variable <code>${name.slice(0, 200)}</code>`,
    })),
    ...launch.map(([what, value]) => ({
      key: `${what} ${value}`,
      content: html`${what}: <code>${value.slice(0, 2_000)}</code>`,
    })),
  ];
  return html`<section aria-labelledby="may"><h2 id="may">What it may do</h2>
${changeList(items(before), items(after))}</section>`;
}

function toolChanges(before: ManifestView, after: ManifestView): Html {
  const items = ({ tools }: ManifestView): readonly Item[] =>
    tools.map(({ name }) => ({ key: name, content: html`<code>${name.slice(0, 200)}</code>` }));
  const earlier = new Map(before.tools.map((tool) => [tool.name, JSON.stringify(tool.definition)]));
  const changed = after.tools.filter(({ name, definition }) =>
    earlier.has(name) && earlier.get(name) !== JSON.stringify(definition)
  ).map(({ name }) => name);
  const names = changed.slice(0, MAX_ITEMS).map((name, at) =>
    html`${at === 0 ? "" : ", "}<code>${name.slice(0, 200)}</code>`
  );
  return html`<section aria-labelledby="tools"><h2 id="tools">Tools</h2>
${changeList(items(before), items(after))}
${changed.length === 0 ? html`` : html`<p>Changed definitions: ${names}</p>`}</section>`;
}

function changeList(before: readonly Item[], after: readonly Item[]): Html {
  const [oldKeys, newKeys] = [before, after].map((items) => new Set(items.map(({ key }) => key)));
  const added = after.filter(({ key }) => !oldKeys?.has(key));
  const removed = before.filter(({ key }) => !newKeys?.has(key));
  if (added.length + removed.length === 0) {
    return html`<p class="calm">Nothing was added or removed.</p>`;
  }
  return html`<ul class="changes">
${added.slice(0, MAX_ITEMS).map(({ content }) => html`<li><ins>Added</ins> ${content}</li>`)}
${removed.slice(0, MAX_ITEMS).map(({ content }) => html`<li><del>Removed</del> ${content}</li>`)}
${
    [added, removed].some(({ length }) => length > MAX_ITEMS)
      ? html`<li>and more</li>`
      : html``
  }</ul>`;
}

function codeChanges(before: StoredEntry, after: StoredEntry): Html {
  if (before.code === undefined && after.code === undefined) return html``;
  const [from, to] = [before, after].map(readableCode);
  return html`<section aria-labelledby="code"><h2 id="code">Code</h2>
${boundedDifferences(from ?? "", to ?? "")}</section>`;
}

function boundedDifferences(from: string, to: string): Html {
  const isLong = [from, to].some(({ length }) => length > MAX_SHOWN.bytes);
  return isLong
    ? html`
      <p
        class="warning">It is longer than ${MAX_SHOWN.bytes.toLocaleString(
          "en-GB",
        )} characters, and is not compared here. Download both versions.</p>
    `
    : differences(from, to);
}

function manifestText({ manifest }: StoredEntry): string {
  return JSON.stringify(manifest, null, 2);
}

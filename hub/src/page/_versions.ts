/**
 * Shows the versions of a name, and the form that compares two of them.
 *
 * @module
 */

import type { StoredEntry } from "../store/store.ts";
import { dayOf, type PageOptions, pathTo } from "./_frame.ts";
import { type Html, html } from "./_html.ts";

const MOST = 100;

/** Shows the versions of an entry's name, the newest first. */
export async function versionSection(
  { fqdn, version }: StoredEntry,
  { store }: PageOptions,
): Promise<Html> {
  const [versions, dates] = await Promise.all([store.versions(fqdn), store.dates(fqdn)]);
  const rows = versions.slice(0, MOST).map((one, at) => {
    const date = dates.get(one);
    const older = versions[at + 1];
    return html`
      <li${one === version
        ? html`
          aria-current="page"
        `
        : html``}>
      <a class="external" href="${pathTo(fqdn, one)}">${one}</a>${date === undefined
        ? html``
        : dayOf(date)}${older === undefined
        ? html``
        : html`<a href="${
          diffPath(fqdn, older, { to: one })
        }" aria-label="${`What ${one} changed since ${older}`}">changes</a>`}</li>
    `;
  });
  const rest = versions.length - rows.length;
  return html`<section aria-labelledby="versions"><h2 id="versions">Versions</h2>
<ul class="versions">${rows}</ul>
${rest > 0 ? html`<p>and ${rest} older ones</p>` : html``}
${
    versions.length > 1
      ? compareForm({ fqdn, versions, from: versions[1] ?? "", to: version })
      : html``
  }
</section>`;
}

/** The data of a comparison. */
export interface Comparison {
  readonly fqdn: string;
  readonly versions: readonly string[];
  readonly from: string;
  readonly to: string;
}

/** Shows the form that compares two versions. */
export function compareForm({ fqdn, versions, from, to }: Comparison): Html {
  const choice = (chosen: string) =>
    versions.slice(0, MOST).map((one) =>
      html`
        <option value="${one}" ${one === chosen
          ? html`
            selected
          `
          : html``}>${one}</option>
      `
    );
  return html`<form class="compare" action="${pathTo(fqdn)}/diff" method="get">
<label>From <select name="from">${choice(from)}</select></label>
<label>to <select name="to">${choice(to)}</select></label>
<button type="submit">Compare</button></form>`;
}

/** Returns the address of a comparison. */
export function diffPath(fqdn: string, from: string, { to }: { readonly to: string }): string {
  return `${pathTo(fqdn)}/diff?${new URLSearchParams({ from, to })}`;
}

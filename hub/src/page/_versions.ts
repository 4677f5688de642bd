/**
 * Shows the versions of a name, and the form that compares two of them.
 *
 * @module
 */

import type { StoredEntry } from "../store/store.ts";
import { dateHtml, type PageOptions, pathTo } from "./_frame.ts";
import { type Html, html } from "./_html.ts";

const MAX_VERSIONS = 100;

/** Shows the versions of an entry's name, the newest first. */
export async function versionSection(
  { fqdn, version }: StoredEntry,
  { store }: PageOptions,
): Promise<Html> {
  const [versions, dates] = await Promise.all([store.versions(fqdn), store.dates(fqdn)]);
  const rows = versions.slice(0, MAX_VERSIONS).map((rowVersion, index) => {
    const date = dates.get(rowVersion);
    const older = versions[index + 1];
    return html`
      <li${rowVersion === version
        ? html`
          aria-current="page"
        `
        : html``}>
      <a class="external" href="${pathTo(fqdn, rowVersion)}">${rowVersion}</a>${date === undefined
        ? html``
        : dateHtml(date)}${older === undefined
        ? html``
        : html`<a href="${
          diffPath(fqdn, older, { to: rowVersion })
        }" aria-label="${`What ${rowVersion} changed since ${older}`}">changes</a>`}</li>
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

/** The versions of a name, and the two of them that are compared. */
export interface Comparison {
  readonly fqdn: string;
  readonly versions: readonly string[];
  readonly from: string;
  readonly to: string;
}

/** Shows the form that compares two versions. */
export function compareForm({ fqdn, versions, from, to }: Comparison): Html {
  const optionsFor = (chosen: string) =>
    versions.slice(0, MAX_VERSIONS).map((version) =>
      html`
        <option value="${version}" ${version === chosen
          ? html`
            selected
          `
          : html``}>${version}</option>
      `
    );
  return html`<form class="compare" action="${pathTo(fqdn)}/diff" method="get">
<label>From <select name="from">${optionsFor(from)}</select></label>
<label>to <select name="to">${optionsFor(to)}</select></label>
<button type="submit">Compare</button></form>`;
}

/** Returns the address of a comparison. */
export function diffPath(fqdn: string, from: string, { to }: { readonly to: string }): string {
  return `${pathTo(fqdn)}/diff?${new URLSearchParams({ from, to })}`;
}

/**
 * The page of one entry.
 *
 * @module
 */

import { integrityOf } from "@casys/pml/registry";
import type { StoredEntry } from "../store/store.ts";
import { MAX_SHOWN, numberedLines, readableCode, shownCode } from "./_code.ts";
import {
  dateHtml,
  downloadOf,
  type PageContent,
  type PageOptions,
  untrustedText,
} from "./_frame.ts";
import { type Html, html } from "./_html.ts";
import { withNoun } from "./_list.ts";
import { type ManifestView, viewOf } from "./_manifest.ts";
import { permissionList } from "./_permissions.ts";
import { toolSection } from "./_tools.ts";
import { callLine, registriesLine } from "./_use.ts";
import { versionSection } from "./_versions.ts";

const MAX_TEXT = 1_000;
const MAX_ITEMS = 100;

/** Returns the page of an entry. */
export async function entryPage(entry: StoredEntry, options: PageOptions): Promise<PageContent> {
  const { fqdn, version, manifest, code } = entry;
  const view = viewOf(manifest);
  const main = html`
    <p class="crumbs"><a href="/search">All entries</a></p>
    <h1><span class="external">${fqdn}</span> <small class="external">${version}</small></h1>
    ${yankedSection(entry)}
    ${view.description === ""
      ? html``
      : html`<p class="lead">${untrustedText(view.description, MAX_TEXT)}</p>`}
    <div class="columns">
      <div>
    ${useSection(entry, { view, options })}
    ${abilitySection(view)}
    ${variableSection(view)}
    ${warningSection(view)}
    ${toolSection(view.tools)}
      </div>
      <div class="side">
    ${factSection(entry, { view, options })}
    ${await versionSection(entry, options)}
      </div>
    </div>
    ${code === undefined ? html`` : codeSection(entry, code)}
  `;
  return { status: 200, title: `${fqdn} ${version}`, main };
}

/** The data that the sections show. */
interface Parts {
  readonly view: ManifestView;
  readonly options: PageOptions;
}

function useSection({ fqdn }: StoredEntry, { view, options }: Parts): Html {
  return html`<section aria-labelledby="use"><h2 id="use">Use it</h2>
<p>Name this hub in <code>.pml.json</code>, then call a tool. PML asks you first.</p>
${registriesLine(options)}
${callLine(fqdn, view.tools)}</section>`;
}

function abilitySection(view: ManifestView): Html {
  const rows = view.launch.slice(0, MAX_ITEMS).map(([what, value]) =>
    html`
      <div>
        <dt>${what}</dt>
        <dd><code>${value.slice(0, MAX_TEXT)}</code></dd>
      </div>
    `
  );
  return html`<section aria-labelledby="may"><h2 id="may">What it may do</h2>
<p>${view.kind.summary}</p>
${rows.length === 0 ? html`` : html`<dl class="pairs">${rows}</dl>`}
${permissionList(view)}</section>`;
}

function yankedSection({ yanked }: StoredEntry): Html {
  if (yanked === undefined) return html``;
  const reason = yanked === "" ? "Its publisher gave no reason." : yanked;
  return html`
    <section class="warning" aria-labelledby="yanked">
      <h2 id="yanked">Yanked</h2>
      <p>This version is hidden from lists and search. <q>${reason}</q></p>
    </section>
  `;
}

function variableSection({ env }: ManifestView): Html {
  if (env.length === 0) return html``;
  const names = env.slice(0, MAX_ITEMS).map((name) =>
    html`<li><code>${name.slice(0, 200)}</code></li>`
  );
  const rest = env.length > MAX_ITEMS ? html`<li>and ${env.length - MAX_ITEMS} more</li>` : html``;
  return html`
    <section aria-labelledby="keys">
      <h2 id="keys">Variables it asks for</h2>
      <p>Set them in the environment of PML, or store them with <code>pml key set</code>.</p>
      <ul class="plain">${names}${rest}</ul>
    </section>
  `;
}

function warningSection({ warnings }: ManifestView): Html {
  if (warnings.length === 0) return html``;
  const lines = warnings.slice(0, 20).map((line) => html`<li>${untrustedText(line, 300)}</li>`);
  const rest = warnings.length > 20 ? html`<li>and ${warnings.length - 20} more</li>` : html``;
  return html`
    <section class="warning" aria-labelledby="warnings">
      <h2 id="warnings">Its author warns</h2>
      <ul>${lines}${rest}</ul>
    </section>
  `;
}

function factSection(
  { fqdn, version, created, code, owner }: StoredEntry,
  { view, options }: Parts,
): Html {
  const { publicKey } = options;
  const hash = code === undefined ? view.integrity : integrityOf(code);
  return html`
    <section aria-labelledby="facts">
      <h2 id="facts">Facts</h2>
      <dl>
    <div><dt>Kind</dt><dd>${view.kind.title}</dd></div>
    <div><dt>Runs</dt><dd>${view.routing === "cloud"
      ? "in the cloud"
      : "on your machine"}</dd></div>
    <div><dt>Published by</dt><dd>${owner ?? "the operator"}</dd></div>
    <div><dt>Added</dt><dd>${dateHtml(created)}</dd></div>
    ${hash === "" ? html`` : html`
      <div>
        <dt>Integrity</dt>
        <dd><code>${hash}</code></dd>
      </div>
    `}
    <div><dt>Signature</dt><dd>${publicKey === undefined
      ? html`Not signed`
      : html`by the key of this hub <code>${publicKey}</code>`}</dd></div>
    <div><dt>For programs</dt><dd><a href="${downloadOf(
      fqdn,
      version,
    )}" download>Download this version</a></dd></div>
      </dl>
    </section>
  `;
}

function codeSection(entry: StoredEntry, code: Uint8Array): Html {
  const { fqdn, version } = entry;
  const { lines, isWhole } = shownCode(readableCode(entry));
  const size = `${withNoun(code.length, "byte", "bytes")}`;
  const rest = isWhole ? html`` : html`<p class="warning">This is only the first part of the code:
at most ${MAX_SHOWN.bytes.toLocaleString("en-GB")} bytes and ${
    MAX_SHOWN.lines.toLocaleString("en-GB")
  } lines are shown. <a href="${
    downloadOf(fqdn, version)
  }" download>Download all of it</a> before you trust it.</p>`;
  return html`<section aria-labelledby="code"><h2 id="code">Code</h2>
<p class="calm">${size}. Long lines are wrapped, never cut. Right-to-left letters are shown in the order in
which they are stored.</p>${rest}
${numberedLines(lines)}</section>`;
}

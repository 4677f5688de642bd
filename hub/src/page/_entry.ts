/**
 * The page of one entry.
 *
 * @module
 */

import { integrityOf } from "@casys/pml/registry";
import type { StoredEntry } from "../store/store.ts";
import { numbered, partOf, readable, SHOWN } from "./_code.ts";
import { dayOf, downloadOf, external, type PageOptions, type Sheet } from "./_frame.ts";
import { type Html, html } from "./_html.ts";
import { counted } from "./_list.ts";
import { type Shown, shownOf } from "./_manifest.ts";
import { permissionList } from "./_permissions.ts";
import { toolSection } from "./_tools.ts";
import { callLine, registriesLine } from "./_use.ts";
import { versionSection } from "./_versions.ts";

const LONGEST = 1_000;
const MOST = 100;

/** Returns the page of an entry. */
export async function entryPage(entry: StoredEntry, options: PageOptions): Promise<Sheet> {
  const { fqdn, version, manifest, code } = entry;
  const entryFacts = shownOf(manifest);
  const main = html`
    <p class="crumbs"><a href="/search">All entries</a></p>
    <h1><span class="external">${fqdn}</span> <small class="external">${version}</small></h1>
    ${hidden(entry)}
    ${entryFacts.description === ""
      ? html``
      : html`<p class="lead">${external(entryFacts.description, LONGEST)}</p>`}
    <div class="columns">
      <div>
    ${useSection(entry, { shown: entryFacts, options })}
    ${abilities(entryFacts)}
    ${keys(entryFacts)}
    ${warnings(entryFacts)}
    ${toolSection(entryFacts.tools)}
      </div>
      <div class="side">
    ${facts(entry, { shown: entryFacts, options })}
    ${await versionSection(entry, options)}
      </div>
    </div>
    ${code === undefined ? html`` : codeSection(entry, code)}
  `;
  return { status: 200, title: `${fqdn} ${version}`, main };
}

/** The data of the page. */
interface Parts {
  readonly shown: Shown;
  readonly options: PageOptions;
}

function useSection({ fqdn }: StoredEntry, { shown, options }: Parts): Html {
  return html`<section aria-labelledby="use"><h2 id="use">Use it</h2>
<p>Name this hub in <code>.pml.json</code>, then call a tool. PML asks you first.</p>
${registriesLine(options)}
${callLine(fqdn, shown.tools)}</section>`;
}

function abilities(facts: Shown): Html {
  const rows = facts.way.slice(0, MOST).map(([what, value]) =>
    html`
      <div>
        <dt>${what}</dt>
        <dd><code>${value.slice(0, LONGEST)}</code></dd>
      </div>
    `
  );
  return html`<section aria-labelledby="may"><h2 id="may">What it may do</h2>
<p>${facts.kind.summary}</p>
${rows.length === 0 ? html`` : html`<dl class="pairs">${rows}</dl>`}
${permissionList(facts)}</section>`;
}

function hidden({ yanked }: StoredEntry): Html {
  if (yanked === undefined) return html``;
  const reason = yanked === "" ? "Its publisher gave no reason." : yanked;
  return html`
    <section class="warning" aria-labelledby="yanked">
      <h2 id="yanked">Yanked</h2>
      <p>This version is hidden from lists and search. <q>${reason}</q></p>
    </section>
  `;
}

function keys({ env }: Shown): Html {
  if (env.length === 0) return html``;
  const names = env.slice(0, MOST).map((name) => html`<li><code>${name.slice(0, 200)}</code></li>`);
  const rest = env.length > MOST ? html`<li>and ${env.length - MOST} more</li>` : html``;
  return html`
    <section aria-labelledby="keys">
      <h2 id="keys">Variables it asks for</h2>
      <p>Set them where PML runs, or keep them with <code>pml key set</code>.</p>
      <ul class="plain">${names}${rest}</ul>
    </section>
  `;
}

function warnings({ warnings }: Shown): Html {
  if (warnings.length === 0) return html``;
  const lines = warnings.slice(0, 20).map((line) => html`<li>${external(line, 300)}</li>`);
  const rest = warnings.length > 20 ? html`<li>and ${warnings.length - 20} more</li>` : html``;
  return html`
    <section class="warning" aria-labelledby="warnings">
      <h2 id="warnings">Its author warns</h2>
      <ul>${lines}${rest}</ul>
    </section>
  `;
}

function facts(
  { fqdn, version, created, code, owner }: StoredEntry,
  { shown, options }: Parts,
): Html {
  const { publicKey } = options;
  const hash = code === undefined ? shown.integrity : integrityOf(code);
  return html`
    <section aria-labelledby="facts">
      <h2 id="facts">Facts</h2>
      <dl>
    <div><dt>Kind</dt><dd>${shown.kind.title}</dd></div>
    <div><dt>Runs</dt><dd>${shown.routing === "cloud"
      ? "in the cloud"
      : "on your machine"}</dd></div>
    <div><dt>Published by</dt><dd>${owner ?? "the operator"}</dd></div>
    <div><dt>Added</dt><dd>${dayOf(created)}</dd></div>
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
  const { lines, isWhole } = partOf(readable(entry));
  const size = `${counted(code.length, "byte", "bytes")}`;
  const rest = isWhole ? html`` : html`<p class="warning">This is only the first part of the code:
at most ${SHOWN.bytes.toLocaleString("en-GB")} bytes and ${
    SHOWN.lines.toLocaleString("en-GB")
  } lines are shown. <a href="${
    downloadOf(fqdn, version)
  }" download>Download all of it</a> before you trust it.</p>`;
  return html`<section aria-labelledby="code"><h2 id="code">Code</h2>
<p class="calm">${size}. Lines are broken, and never cut; right-to-left letters stand in the order in
which they are stored.</p>${rest}
${numbered(lines)}</section>`;
}

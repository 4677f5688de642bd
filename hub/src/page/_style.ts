/**
 * The style of all pages. Each page contains the style; its content security policy allows only the
 * hash of the style.
 *
 * @module
 */

import { createHash } from "node:crypto";
import { html } from "./_html.ts";
import { SHARED_STYLE } from "./_shared_style.ts";

/** The element with the style of all pages. */
export const STYLE = html`<style>
${SHARED_STYLE}
.top form { display: flex; flex: 1 1 18rem; gap: .5rem; max-width: 36rem; margin-left: auto; }
main { padding-block: 2rem 3rem; }
section { margin-top: 2rem; }
.crumbs { margin: 0 0 .5rem; font-size: .875rem; }
.lead { font-size: 1.1rem; max-width: 48rem; margin-top: .6rem; }
.lead, .hits li, .tool, .warning { contain: paint; }
.use { border-left: 3px solid var(--accent); }
.hero { max-width: 48rem; }
.hero p { color: var(--calm); }
ul.hits { list-style: none; padding: 0; margin: 1rem 0; display: grid; gap: .75rem; }
@media (min-width: 60rem) { ul.hits { grid-template-columns: 1fr 1fr; } }
.hits li {
  background: var(--card); border: 1px solid var(--line); border-radius: .7rem;
  padding: .9rem 1.1rem; min-width: 0; display: flex; flex-direction: column;
}
.hits p { margin: .25rem 0; }
.hits .facts { margin-top: auto; padding-top: .35rem; }
.columns { display: grid; gap: 0 3rem; grid-template-columns: minmax(0, 1fr); }
@media (min-width: 60rem) { .columns { grid-template-columns: minmax(0, 1fr) 20rem; } }
.side section {
  background: var(--card); border: 1px solid var(--line); border-radius: .7rem;
  padding: 1rem 1.25rem; font-size: .9375rem;
}
.side section + section { margin-top: 1rem; }
.members { border-left: 2px solid var(--line); padding-left: 1rem; }
.members dt { color: var(--ink); font-size: 1rem; }
.pairs > div { display: grid; grid-template-columns: 6rem minmax(0, 1fr); gap: .5rem; }
.wishes, .plain { padding-left: 1.2rem; margin: .6rem 0; }
.wishes .grave { color: var(--grave); font-weight: 600; }
.tool { padding-block: 1rem; border-top: 1px solid var(--line); }
h2 + .tool { border-top: 0; }
.versions { list-style: none; padding: 0; margin: .5rem 0; max-height: 22rem; overflow: auto; }
.versions li {
  display: grid; grid-template-columns: minmax(0, 1fr) auto 4.8rem; gap: .75rem;
  padding: .3rem .5rem; align-items: baseline;
}
.versions time { color: var(--calm); font-size: .875rem; font-weight: 400; }
.versions { margin-inline: -.5rem; }
.versions [aria-current] { background: var(--accent-soft); border-radius: .35rem; font-weight: 650; }
.compare { display: flex; flex-wrap: wrap; gap: .6rem; align-items: end; margin-top: .75rem; }
.compare label { flex: 1 1 6rem; min-width: 0; color: var(--calm); font-size: .875rem; }
.compare select { width: 100%; color: var(--ink); font-size: 1rem; }
main > .compare { max-width: 34rem; }
.code { counter-reset: line; padding-inline: 0; }
.code code { direction: ltr; unicode-bidi: bidi-override; display: block; }
.code span, .code ins, .code del { display: block; padding: 0 1rem 0 4.25rem; }
.code span::before {
  counter-increment: line; content: counter(line) / ""; float: left; width: 3rem;
  margin-left: -4.25rem; text-align: right; color: var(--calm); user-select: none;
}
.code span:target { background: var(--accent-soft); }
.diff span, .diff ins, .diff del { padding: 0 1rem 0 2.75rem; }
.diff span::before { content: none; }
.diff b { float: left; width: 1.5rem; margin-left: -1.5rem; }
.diff .gap { color: var(--calm); background: var(--card); padding-block: .15rem; }
.changes { list-style: none; padding: 0; display: grid; gap: .4rem; }
.changes ins, .changes del {
  border-radius: .3rem; padding: .1rem .5rem; font-size: .875rem; font-weight: 650;
  margin-right: .35rem;
}
@media (max-width: 30rem) {
  .code span { padding-left: 3.25rem; }
  .code span::before { width: 2.25rem; margin-left: -3.25rem; }
  .diff span, .diff ins, .diff del { padding-left: 2.25rem; }
  .pairs > div { grid-template-columns: minmax(0, 1fr); gap: 0; }
  .top form { max-width: none; }
}
</style>`;

/** The SHA-256 hash of the style in base64, for the content security policy. */
export const STYLE_HASH = createHash("sha256")
  .update(String(STYLE).replace(/^<style>|<\/style>$/g, "")).digest("base64");

/**
 * The style of all pages. Each page contains it, and its headers the hash of it.
 *
 * @module
 */

import { createHash } from "node:crypto";
import { html } from "./_html.ts";

/** The element with the style of all pages. */
export const STYLE = html`<style>
:root {
  color-scheme: light dark;
  --paper: #fbfbf9; --card: #ffffff; --ink: #1c2321; --calm: #56625e; --line: #dfe3df;
  --accent: #0f6352; --accent-soft: #e3f1ec; --on-accent: #ffffff; --code: #f2f4f1;
  --warn: #7a4a00; --warn-soft: #fdf1db; --warn-line: #e8c98d;
  --grave: #a01f2b; --add: #0b5c33; --add-soft: #e0f3e6; --del: #97202c; --del-soft: #fbe6e6;
  --mark: #5a2a82; --mark-soft: #efe3f8;
  --mono: ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #131716; --card: #1a201e; --ink: #e6ebe8; --calm: #a3b0ab; --line: #2f3835;
    --accent: #6fd0b6; --accent-soft: #18332c; --on-accent: #0c1e19; --code: #202724;
    --warn: #f0c675; --warn-soft: #33280f; --warn-line: #6b5218;
    --grave: #ff9a9a; --add: #8fdfae; --add-soft: #14301f; --del: #ffb0b0; --del-soft: #3b1a1d;
    --mark: #d9b8f5; --mark-soft: #34214a;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; scroll-padding-top: 1rem; }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 1rem/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
  overflow-wrap: anywhere;
}
.wide { max-width: 72rem; margin-inline: auto; padding-inline: clamp(1rem, 4vw, 2.5rem); }
a { color: var(--accent); text-underline-offset: .18em; text-decoration-thickness: .06em; }
a:hover { text-decoration-thickness: .12em; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: .25rem; }
main:focus { outline: none; }
.skip { position: absolute; left: -100rem; }
.skip:focus { left: 1rem; top: .5rem; background: var(--card); padding: .5rem 1rem; z-index: 1; }
.unseen {
  position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%);
  white-space: nowrap;
}
.top { background: var(--card); border-bottom: 1px solid var(--line); }
.top .wide {
  display: flex; flex-wrap: wrap; gap: .75rem 2rem; align-items: center; padding-block: .75rem;
}
.brand {
  display: inline-flex; gap: .6rem; align-items: center; font-weight: 650; color: var(--ink);
  text-decoration: none;
}
.top form { display: flex; flex: 1 1 18rem; gap: .5rem; max-width: 36rem; margin-left: auto; }
input, select, button, .button {
  font: inherit; color: inherit; background: var(--card); border: 1px solid var(--calm);
  border-radius: .45rem; padding: .4rem .75rem; min-height: 2.5rem; max-width: 100%;
}
input { flex: 1 1 auto; min-width: 0; }
input::placeholder { color: var(--calm); opacity: 1; }
button, .button {
  background: var(--accent); border-color: var(--accent); color: var(--on-accent); font-weight: 600;
  cursor: pointer; text-decoration: none; display: inline-block;
}
button:hover, .button:hover { filter: brightness(1.08); }
main { padding-block: 2rem 3rem; }
footer { color: var(--calm); font-size: .875rem; }
footer p { border-top: 1px solid var(--line); margin: 0; padding-block: 1rem 2rem; }
h1, h2, h3 { line-height: 1.25; margin: 0; font-weight: 650; text-wrap: balance; }
h1 { font-size: clamp(1.5rem, 1.2rem + 1.6vw, 2.1rem); letter-spacing: -.015em; }
h2 { font-size: 1.2rem; }
h3 { font-size: 1rem; }
small { font-weight: 450; color: var(--calm); font-size: .75em; }
p { margin: .5rem 0; }
section { margin-top: 2rem; }
.crumbs { margin: 0 0 .5rem; font-size: .875rem; }
.lead { font-size: 1.1rem; max-width: 48rem; margin-top: .6rem; }
.calm { color: var(--calm); }
.external, td, dd, q { unicode-bidi: isolate; }
.lead, .hits li, .tool, .warning { contain: paint; }
mark {
  background: var(--mark-soft); color: var(--mark); border-radius: .2rem; padding: 0 .15em;
  font: .85em var(--mono);
}
code, pre { font-family: var(--mono); font-size: .875rem; }
pre {
  background: var(--code); border: 1px solid var(--line); border-radius: .6rem; margin: .6rem 0;
  padding: .75rem 1rem; white-space: pre-wrap; overflow-wrap: anywhere; line-height: 1.55;
  tab-size: 4;
}
:not(pre) > code { background: var(--code); border-radius: .3rem; padding: .08em .35em; }
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
.facts { display: flex; flex-wrap: wrap; gap: .1rem .5rem; color: var(--calm); font-size: .875rem; }
.facts span + span::before { content: "·" / ""; margin-right: .5rem; }
.columns { display: grid; gap: 0 3rem; grid-template-columns: minmax(0, 1fr); }
@media (min-width: 60rem) { .columns { grid-template-columns: minmax(0, 1fr) 20rem; } }
.side section {
  background: var(--card); border: 1px solid var(--line); border-radius: .7rem;
  padding: 1rem 1.25rem; font-size: .9375rem;
}
.side section + section { margin-top: 1rem; }
dl { margin: .5rem 0; }
dl > div { padding-block: .3rem; }
dt { color: var(--calm); font-size: .875rem; }
dd { margin: 0; }
.members { border-left: 2px solid var(--line); padding-left: 1rem; }
.members dt { color: var(--ink); font-size: 1rem; }
.pairs > div { display: grid; grid-template-columns: 6rem minmax(0, 1fr); gap: .5rem; }
.wishes, .plain { padding-left: 1.2rem; margin: .6rem 0; }
.wishes .grave { color: var(--grave); font-weight: 600; }
.warning {
  background: var(--warn-soft); border: 1px solid var(--warn-line); border-radius: .6rem;
  padding: .75rem 1rem; color: var(--warn);
}
.warning a { color: inherit; }
.warning ul { margin: .4rem 0 0; padding-left: 1.2rem; }
.tool { padding-block: 1rem; border-top: 1px solid var(--line); }
h2 + .tool { border-top: 0; }
details { margin-top: .4rem; }
summary { cursor: pointer; color: var(--accent); width: fit-content; }
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
ins { background: var(--add-soft); color: var(--add); text-decoration: none; }
del { background: var(--del-soft); color: var(--del); text-decoration: none; }
.changes { list-style: none; padding: 0; display: grid; gap: .4rem; }
.changes ins, .changes del {
  border-radius: .3rem; padding: .1rem .5rem; font-size: .875rem; font-weight: 650;
  margin-right: .35rem;
}
.problem { max-width: 40rem; padding-block: 2rem; }
@media (max-width: 30rem) {
  .code span { padding-left: 3.25rem; }
  .code span::before { width: 2.25rem; margin-left: -3.25rem; }
  .diff span, .diff ins, .diff del { padding-left: 2.25rem; }
  .pairs > div { grid-template-columns: minmax(0, 1fr); gap: 0; }
  .top form { max-width: none; }
}
@media (forced-colors: active) { ins, del, mark { border: 1px solid; } }
</style>`;

/** The hash of the style, for the policy. */
export const STYLE_HASH = createHash("sha256")
  .update(String(STYLE).replace(/^<style>|<\/style>$/g, "")).digest("base64");

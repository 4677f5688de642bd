/**
 * The CSS that the pages of a hub share with the page of `pml page`: colours of both themes, type,
 * controls, code, and warnings. `tools/assets.ts` builds the page of `pml page` with it.
 *
 * @module
 */

import { html } from "./_html.ts";

/** Rules of CSS. No value is inserted. */
export const SHARED_STYLE = html`:root {
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
footer { color: var(--calm); font-size: .875rem; }
footer p { border-top: 1px solid var(--line); margin: 0; padding-block: 1rem 2rem; }
h1, h2, h3 { line-height: 1.25; margin: 0; font-weight: 650; text-wrap: balance; }
h1 { font-size: clamp(1.5rem, 1.2rem + 1.6vw, 2.1rem); letter-spacing: -.015em; }
h2 { font-size: 1.2rem; }
h3 { font-size: 1rem; }
small { font-weight: 450; color: var(--calm); font-size: .75em; }
p { margin: .5rem 0; }
.calm { color: var(--calm); }
.external, td, dd, q { unicode-bidi: isolate; }
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
.facts { display: flex; flex-wrap: wrap; gap: .1rem .5rem; color: var(--calm); font-size: .875rem; }
.facts > span:not(:last-child)::after { content: "·" / ""; margin-left: .5rem; }
dl { margin: .5rem 0; }
dl > div { padding-block: .3rem; }
dt { color: var(--calm); font-size: .875rem; }
dd { margin: 0; }
.warning {
  background: var(--warn-soft); border: 1px solid var(--warn-line); border-radius: .6rem;
  padding: .75rem 1rem; color: var(--warn);
}
.warning a { color: inherit; }
.warning ul { margin: .4rem 0 0; padding-left: 1.2rem; }
details { margin-top: .4rem; }
summary { cursor: pointer; color: var(--accent); width: fit-content; }
ins { background: var(--add-soft); color: var(--add); text-decoration: none; }
del { background: var(--del-soft); color: var(--del); text-decoration: none; }
.problem { max-width: 40rem; padding-block: 2rem; }
@media (forced-colors: active) { ins, del, mark { border: 1px solid; } }`;

/**
 * Matches addresses with URI templates (RFC 6570). The matching does not backtrack, because servers
 * write the templates, and a bad template must not take long.
 *
 * @module
 */

import { GlobSet } from "../core/glob.ts";
import type { ListItem } from "../protocol/lists.ts";

/** The maximum number of templates of a server that are compared. All others match nothing. */
const TEMPLATES_MAX = 1_000;
/** The maximum length of a template, in characters. A longer one matches nothing. */
const TEMPLATE_MAX = 2_000;
/** The maximum number of globs of one template. Each optional part doubles the number. */
const GLOBS_MAX = 8;
/** The maximum work of one comparison, in steps of `GlobSet`. */
const STEPS_MAX = 2_000_000;
const EXPRESSION = /\{([+#./;?&]?)([^{}]*)\}/g;

/** The templates of a list. */
interface Templates {
  readonly texts: ReadonlySet<string>;
  readonly globs: GlobSet;
}

const compiledTemplates = new WeakMap<readonly ListItem[], Templates>();

/** Returns whether an address is a template of a list, or one of its templates covers it. */
export function isCovered(uri: string, items: readonly ListItem[]): boolean {
  const { texts, globs } = templatesOf(items);
  if (texts.has(uri)) return true;
  const covering = globs.findMatches(uri, { steps: { remaining: STEPS_MAX } });
  return covering !== undefined && covering.size > 0;
}

function templatesOf(items: readonly ListItem[]): Templates {
  const cached = compiledTemplates.get(items);
  if (cached !== undefined) return cached;
  const all = items.slice(0, TEMPLATES_MAX).map(({ uriTemplate }) => uriTemplate)
    .filter((template) =>
      typeof template === "string" && template.length <= TEMPLATE_MAX
    ) as readonly string[];
  const templates = { texts: new Set(all), globs: new GlobSet(all.flatMap(globsOf)) };
  compiledTemplates.set(items, templates);
  return templates;
}

/** Returns the globs that cover the addresses of a template. */
function globsOf(template: string): readonly string[] {
  let globs = [""];
  let end = 0;
  const add = (texts: readonly string[]) => {
    globs = globs.flatMap((glob) => texts.map((text) => glob + text)).slice(0, GLOBS_MAX);
  };
  for (
    const { index, 0: { length }, 1: operator = "", 2: names = "" } of template.matchAll(EXPRESSION)
  ) {
    add([escapeGlob(template.slice(end, index))]);
    add(globsOfExpression(operator, names));
    end = index + length;
  }
  add([escapeGlob(template.slice(end))]);
  return globs;
}

/** Returns the globs of one expression. A variable without `+` or `*` contains no slash. */
function globsOfExpression(operator: string, names: string): readonly string[] {
  const value = /\*(?:,|$)/.test(names) ? "**" : "*";
  switch (operator) {
    case "+":
      return ["**"];
    case "":
      return [value];
    case ".":
    case "/":
      return ["", `${operator}${value}`];
    default:
      return ["", `${operator}**`];
  }
}

function escapeGlob(text: string): string {
  return text.replace(/[*\\]/g, "\\$&");
}

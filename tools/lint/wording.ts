/**
 * Forbids the wording of messages in assertions, because it belongs to `tests/golden/`.
 *
 * @module
 */

import { placeOf } from "./place.ts";

/** The maximum number of consecutive words in an asserted text. */
const MAX_WORDS = 4;
const WORD = /^\(?[A-Za-z][a-z']*\)?[,;:.!?]?$/;
const ASSERTION = /^(?:assert|assert(?!Golden)[A-Z]\w*|refuse[sd])$/;
/** Functions that search for a text. Texts in other calls are input, not expectations. */
const SEARCHES = new Set("includes startsWith endsWith indexOf split RegExp raw".split(" "));

type Call = Deno.lint.CallExpression | Deno.lint.NewExpression;

/**
 * Reports regular expressions with five or more consecutive words in tests, and texts with as many
 * words that an assertion expects.
 */
export const wording: Deno.lint.Rule = {
  create(context) {
    if (!placeOf(context.filename).isTest) return {};
    const check = (node: Deno.lint.Node, text: string) => {
      if (longestRun(text) <= MAX_WORDS || !isPattern(node) && !isExpected(node)) return;
      const message = "An assertion on the wording of a message";
      const hint = "Assert the code and values, or use `assertGolden()` of tests/kit/golden.ts";
      context.report({ node, message, hint });
    };
    return {
      Literal(node) {
        if ("regex" in node && node.regex) check(node, node.regex.pattern.replace(/\\(?=\W)/g, ""));
        else if (typeof node.value === "string") check(node, node.value);
      },
      TemplateElement(node) {
        check(node, node.cooked ?? "");
      },
    };
  },
};

/** Returns the maximum number of consecutive words in a line of a text. */
export function longestRun(text: string): number {
  let longest = 0;
  for (const line of text.split(/\n|\\n/)) {
    let run = 0;
    for (const part of line.trim().split(" ")) {
      run = WORD.test(part) ? run + 1 : 0;
      longest = Math.max(longest, run);
    }
  }
  return longest;
}

function isPattern(node: Deno.lint.Node): boolean {
  return node.type === "Literal" && "regex" in node && node.regex !== undefined;
}

/** Returns whether a text is part of the value that an assertion expects. */
function isExpected(node: Deno.lint.Node): boolean {
  for (let child = node;;) {
    const { parent } = child as { readonly parent?: Deno.lint.Node | null };
    if (parent === null || parent === undefined) return false;
    if (parent.type === "CallExpression" || parent.type === "NewExpression") {
      const name = nameOf(parent);
      if (isAssertion(parent)) return !isMessage(parent, child);
      if (!SEARCHES.has(name)) return false;
    }
    if (parent.type === "TaggedTemplateExpression" || parent.type === "MemberExpression") {
      // `String.raw` and the receiver of a search.
    } else if (
      parent.type.endsWith("Statement") || parent.type === "Property" && parent.key === child
    ) {
      return false;
    }
    child = parent;
  }
}

function isAssertion({ callee }: Call): boolean {
  if (callee.type === "Identifier") return ASSERTION.test(callee.name);
  return callee.type === "MemberExpression" && callee.object.type === "Identifier" &&
    callee.object.name === "assert";
}

/** Returns whether an argument is the message that the assertion prints when it fails. */
function isMessage(call: Call, argument: Deno.lint.Node): boolean {
  const index = call.arguments.findIndex((item) => item === argument);
  const name = nameOf(call);
  if (name.startsWith("refus")) return false;
  const isText = argument.type === "Literal"
    ? "value" in argument && typeof argument.value === "string"
    : argument.type === "TemplateLiteral";
  if (index === 1 && isText && (name === "rejects" || name === "throws")) return true;
  return name === "fail" || index >= 2 || index === 1 && (name === "ok" || name === "assert");
}

function nameOf({ callee }: Call): string {
  if (callee.type === "Identifier") return callee.name;
  return callee.type === "MemberExpression" && callee.property.type === "Identifier"
    ? callee.property.name
    : "";
}

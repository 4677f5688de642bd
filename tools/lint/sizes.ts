/**
 * Limits the size of functions and files, nesting, and the number of parameters.
 *
 * @module
 */

import { placeOf } from "./place.ts";

const MAX_FUNCTION_LINES = 60;
const MAX_FILE_LINES = 600;
const MAX_NESTING = 3;
const MAX_PARAMETERS = 3;

const FUNCTIONS = "FunctionDeclaration, FunctionExpression, ArrowFunctionExpression";
const BRANCHES = "IfStatement, ForStatement, ForInStatement, ForOfStatement, WhileStatement, " +
  "DoWhileStatement, SwitchStatement, TryStatement";

type FunctionNode =
  | Deno.lint.FunctionDeclaration
  | Deno.lint.FunctionExpression
  | Deno.lint.ArrowFunctionExpression;

/** Reports functions, files, nesting and parameter lists over their limits. */
export const sizes: Deno.lint.Rule = {
  create(context) {
    if (placeOf(context.filename).path.startsWith("tests/fixtures/")) return {};
    const { text } = context.sourceCode;
    return {
      Program(node) {
        const lines = countLines(text.trimEnd());
        if (lines <= MAX_FILE_LINES) return;
        const message = `This file has ${lines} lines, more than ${MAX_FILE_LINES}`;
        context.report({ node, message, hint: "Move the second idea to its own file" });
      },
      [FUNCTIONS](node: FunctionNode) {
        for (const found of functionOffences(node, text)) context.report({ node, ...found });
      },
      [BRANCHES](node: Deno.lint.Node) {
        // Reports only the first level that is too deep.
        if (depthOf(node) !== MAX_NESTING + 1) return;
        const message = `This is nested deeper than ${MAX_NESTING} levels`;
        context.report({
          node,
          message,
          hint: "Return early, or move the inner part to a function",
        });
      },
    };
  },
};

function functionOffences(
  node: FunctionNode,
  text: string,
): { readonly message: string; readonly hint: string }[] {
  const offences = [];
  const lines = countLines(text.slice(...node.range));
  if (lines > MAX_FUNCTION_LINES) {
    offences.push({
      message: `This function has ${lines} lines, more than ${MAX_FUNCTION_LINES}`,
      hint: "Move the second idea to its own function",
    });
  }
  const parameters = node.params.filter((item) =>
    item.type !== "Identifier" || item.name !== "this"
  );
  // The called function defines the parameters of a callback.
  const isDeclared = node.parent.type !== "CallExpression";
  if (isDeclared && parameters.length > MAX_PARAMETERS) {
    offences.push({
      message: `This function has ${parameters.length} parameters, more than ${MAX_PARAMETERS}`,
      hint: "Use at most three parameters; the last may be an options object",
    });
  }
  return offences;
}

function depthOf(node: Deno.lint.Node): number {
  let depth = 0;
  for (let ancestor: Deno.lint.Node | undefined = node; ancestor; ancestor = parentOf(ancestor)) {
    if (FUNCTIONS.includes(ancestor.type)) break;
    if (BRANCHES.includes(ancestor.type) && !isElseIf(ancestor)) depth++;
  }
  return depth;
}

function isElseIf(node: Deno.lint.Node): boolean {
  const parent = parentOf(node);
  return node.type === "IfStatement" && parent?.type === "IfStatement" &&
    parent.alternate?.range[0] === node.range[0];
}

function parentOf(node: Deno.lint.Node): Deno.lint.Node | undefined {
  // `Program` has no parent, and the type of every other node names its own.
  return (node as { readonly parent?: Deno.lint.Node }).parent;
}

function countLines(text: string): number {
  let lines = 1;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lines++;
  return lines;
}

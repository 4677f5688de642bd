/**
 * Forbids comparisons with the names of server kinds outside `src/servers/`.
 *
 * @module
 */

import { KINDS } from "../../src/servers/kinds.ts";
import { placeOf } from "./place.ts";

const NAMES: ReadonlySet<unknown> = new Set(KINDS.map(({ name }) => name));
const SERVERS = "src/servers/";
const HINT = "Ask the kind: a trait, or one of the functions of src/servers/kinds.ts";
/** The names of values that may contain the name of a kind. */
const OF_KIND = /^(?:kind|type)$|(?:Kind|Type)$/;

/** Reports `own.kind === "stdio"` and the like, in PML and in the hub. */
export const kinds: Deno.lint.Rule = {
  create(context) {
    const place = placeOf(context.filename);
    if (!place.inSource || place.isTest || place.path.startsWith(SERVERS)) return {};
    const report = (node: Deno.lint.Node, name: unknown) => {
      const message = `A comparison with the server kind "${name}" outside ${SERVERS}`;
      context.report({ node, message, hint: HINT });
    };
    return {
      BinaryExpression(node) {
        if (!/^[!=]==?$/.test(node.operator)) return;
        for (const [one, other] of [[node.left, node.right], [node.right, node.left]] as const) {
          if (isKindName(one) && isOfKind(other)) report(node, one.value);
        }
      },
      SwitchStatement(node) {
        if (!isOfKind(node.discriminant)) return;
        for (const { test } of node.cases) {
          if (test !== null && isKindName(test)) report(test, test.value);
        }
      },
      CallExpression(node) {
        const { callee, arguments: [value] } = node;
        if (callee.type !== "MemberExpression" || nameOf(callee) !== "includes") return;
        if (callee.object.type !== "ArrayExpression" || !isOfKind(value)) return;
        const found = callee.object.elements.find((one) => isKindName(one));
        if (found !== undefined) report(node, (found as Deno.lint.StringLiteral).value);
      },
    };
  },
};

function isKindName(node: Deno.lint.Node | null): node is Deno.lint.StringLiteral {
  return node?.type === "Literal" && NAMES.has(node.value);
}

/** Returns whether a value is named as one that contains the name of a kind. */
function isOfKind(node: Deno.lint.Node | undefined): boolean {
  if (node?.type === "ChainExpression") return isOfKind(node.expression);
  return node !== undefined && OF_KIND.test(nameOf(node));
}

/** Returns the last name of `a.b.c`; empty for other expressions. */
function nameOf(node: Deno.lint.Node): string {
  if (node.type === "Identifier") return node.name;
  if (node.type !== "MemberExpression" || node.property.type !== "Identifier") return "";
  return node.property.name;
}

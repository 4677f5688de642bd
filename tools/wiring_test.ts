/**
 * Bounds how much of the wiring is functions in object literals, where "go to definition" ends at a
 * property of an options type.
 */

import assert from "node:assert/strict";
import ts from "typescript";
import { walkFiles } from "./words/files.ts";

/** The most members of interfaces that are functions, and the most types named `…Options`. */
const MOST = { members: 108, options: 39 };

function isFunction(type: ts.TypeNode | undefined): boolean {
  if (type === undefined) return false;
  if (ts.isParenthesizedTypeNode(type)) return isFunction(type.type);
  return ts.isFunctionTypeNode(type) || ts.isUnionTypeNode(type) && type.types.some(isFunction);
}

/** Counts the members that are functions, and the types named `…Options`, of a file. */
function wiringOf(
  path: string,
  text: string,
): { readonly members: number; readonly options: number } {
  const count = { members: 0, options: 0 };
  const visit = (node: ts.Node) => {
    const isType = ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node);
    if (isType && node.name.text.endsWith("Options")) count.options++;
    if (ts.isInterfaceDeclaration(node)) {
      count.members += node.members.filter((member) =>
        ts.isPropertySignature(member) && isFunction(member.type)
      ).length;
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true));
  return count;
}

Deno.test("few members of interfaces are functions, and few types are options", async () => {
  const all = { members: 0, options: 0 };
  for await (const { path, text } of walkFiles("src/")) {
    if (!path.endsWith(".ts") || path.endsWith("_test.ts") || path.includes("/boot/")) continue;
    const { members, options } = wiringOf(path, text);
    all.members += members;
    all.options += options;
  }
  assert.ok(all.members > 0 && all.members <= MOST.members, `${all.members} members`);
  assert.ok(all.options > 0 && all.options <= MOST.options, `${all.options} options`);
});

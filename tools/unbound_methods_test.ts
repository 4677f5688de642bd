/**
 * A method that is taken from its object (`const { call } = server`) type-checks, and fails when it
 * is called. This finds such places in the sources.
 */

import assert from "node:assert/strict";
import { join, relative } from "node:path";
import ts from "typescript";
import { repoFile } from "../tests/kit/pml_command.ts";

const OPTIONS: ts.CompilerOptions = {
  target: ts.ScriptTarget.ESNext,
  module: ts.ModuleKind.ESNext,
  moduleResolution: ts.ModuleResolutionKind.Bundler,
  allowImportingTsExtensions: true,
  noEmit: true,
  strict: true,
  skipLibCheck: true,
  types: [],
};

/** Returns the places where a method of a class is used other than by a call. */
function unboundIn(files: readonly string[]): readonly string[] {
  const program = ts.createProgram(files, OPTIONS);
  const checker = program.getTypeChecker();
  return files.flatMap((file) => {
    const source = program.getSourceFile(file);
    if (source === undefined) return [];
    const found: string[] = [];
    const visit = (node: ts.Node): void => {
      if (isUnbound(node, checker)) {
        const { line } = source.getLineAndCharacterOfPosition(node.getStart());
        found.push(`${file}:${line + 1}: ${node.getText()}`);
      }
      ts.forEachChild(node, visit);
    };
    visit(source);
    return found;
  });
}

function isUnbound(node: ts.Node, checker: ts.TypeChecker): boolean {
  if (ts.isPropertyAccessExpression(node)) {
    return isMethod(checker.getSymbolAtLocation(node.name)) && !isUsedInPlace(node);
  }
  if (!ts.isBindingElement(node) || !ts.isObjectBindingPattern(node.parent)) return false;
  const name = node.propertyName ?? node.name;
  return ts.isIdentifier(name) &&
    isMethod(checker.getTypeAtLocation(node.parent).getProperty(name.text));
}

function isMethod(symbol: ts.Symbol | undefined): boolean {
  return symbol?.declarations?.some((each) =>
    ts.isMethodDeclaration(each) && ts.isClassLike(each.parent) &&
    !each.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.StaticKeyword)
  ) === true;
}

/** Returns whether a method is called, asked for a member (`bind`), compared or replaced. */
function isUsedInPlace(node: ts.PropertyAccessExpression): boolean {
  const { parent } = node;
  if (ts.isCallExpression(parent) || ts.isPropertyAccessExpression(parent)) {
    return parent.expression === node;
  }
  if (!ts.isBinaryExpression(parent)) return ts.isTypeOfExpression(parent);
  const { kind } = parent.operatorToken;
  return kind === ts.SyntaxKind.EqualsEqualsEqualsToken ||
    kind === ts.SyntaxKind.ExclamationEqualsEqualsToken ||
    kind === ts.SyntaxKind.EqualsToken && parent.left === node;
}

async function sourcesIn(folder: string): Promise<readonly string[]> {
  const files: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    const path = join(folder, name);
    if (isDirectory) files.push(...await sourcesIn(path));
    else if (name.endsWith(".ts") && !name.endsWith("_test.ts")) files.push(path);
  }
  return files;
}

Deno.test("no method of a class is taken from its object without being bound", async () => {
  const folders = await Promise.all(["src", "builtin"].map((name) => sourcesIn(repoFile(name))));
  const found = unboundIn(folders.flat());
  assert.deepEqual(found.map((place) => relative(repoFile(""), place)), []);
});

Deno.test("a method that is taken from its object is found, and one that stays there is not", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const file = join(folder, "box.ts");
    const lines = [
      "class Box { size = 1; open() { return this.size; } readonly close = () => this.size; }",
      "const box = new Box();",
      "const { open } = box;",
      "const later = box.open;",
      "[1].map(box.open);",
      "const { close } = box;",
      "const bound = box.open.bind(box);",
      "export const used = [box.open(), typeof box.open, close(), bound, open, later];",
    ];
    await Deno.writeTextFile(file, lines.join("\n"));
    const found = unboundIn([file]).map((place) => place.slice(file.length + 1));
    assert.deepEqual(found, ["3: open", "4: box.open", "5: box.open"]);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

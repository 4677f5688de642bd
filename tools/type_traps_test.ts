/**
 * Code that type-checks and fails when it runs: a method that is taken from its object
 * (`const { call } = server`), and a copy of an object whose members are getters, or of a host
 * (`{ ...call, answer }`). This finds such places in the sources.
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

/** The types whose objects may have getters. */
const GETTERS = ["Call", "ResolvedCall", "CheckedCall", "CallClient", "RequestContext"];

/** Returns the places in the files of a program where something is wrong. */
function placesIn(
  program: ts.Program,
  isWrong: (node: ts.Node, checker: ts.TypeChecker) => boolean,
): readonly string[] {
  const checker = program.getTypeChecker();
  for (const source of program.getSourceFiles()) noteImplemented(source, checker);
  return program.getRootFileNames().flatMap((file) => {
    const source = program.getSourceFile(file);
    if (source === undefined) return [];
    const found: string[] = [];
    const visit = (node: ts.Node): void => {
      if (isWrong(node, checker)) {
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

/**
 * Returns whether an object is passed where a method of its class is expected as a function: its
 * receiver may call it without the object.
 */
function isPassedForFunctions(node: ts.Node, checker: ts.TypeChecker): boolean {
  if (ts.isSourceFile(node)) return false;
  const isArgument = (ts.isCallExpression(node.parent) || ts.isNewExpression(node.parent)) &&
    node.parent.arguments?.some((one) => one === node) === true;
  if (!isArgument) return false;
  const type = checker.getTypeAtLocation(node);
  const properties = checker.getContextualType(node as ts.Expression)?.getProperties() ?? [];
  return properties.some(({ name, declarations = [] }) =>
    declarations.some((one) => ts.isPropertySignature(one) && hasFunction(one)) &&
    isMethod(type.getProperty(name))
  );
}

function hasFunction({ type }: ts.PropertySignature): boolean {
  return type !== undefined && (ts.isFunctionTypeNode(type) ||
    ts.isParenthesizedTypeNode(type) && ts.isFunctionTypeNode(type.type));
}

/** Returns whether an object with getters is copied, so that the copy lacks their members. */
function isLossyCopy(node: ts.Node, checker: ts.TypeChecker): boolean {
  if (ts.isSpreadAssignment(node)) return hasGetters(checker.getTypeAtLocation(node.expression));
  return ts.isBindingElement(node) && node.dotDotDotToken !== undefined &&
    ts.isObjectBindingPattern(node.parent) && hasGetters(checker.getTypeAtLocation(node.parent));
}

function hasGetters(type: ts.Type): boolean {
  if (type.isUnionOrIntersection()) return type.types.some(hasGetters);
  const { symbol } = type;
  // A class implements each host, so a copy of one has none of its methods.
  return GETTERS.includes(symbol?.name) || symbol?.name.endsWith("Host") ||
    type.getProperties().some(({ declarations }) => declarations?.some(ts.isGetAccessor));
}

/** The methods of interfaces that classes implement. */
const IMPLEMENTED = new WeakSet<ts.Declaration>();

/** Notes the methods of the interfaces that the classes of a file implement. */
function noteImplemented(source: ts.SourceFile, checker: ts.TypeChecker): void {
  if (source.isDeclarationFile) return;
  const visit = (node: ts.Node): void => {
    if (ts.isClassLike(node)) {
      const types = (node.heritageClauses ?? [])
        .filter(({ token }) => token === ts.SyntaxKind.ImplementsKeyword)
        .flatMap((clause) => clause.types);
      types.flatMap((type) => checker.getTypeAtLocation(type).getProperties())
        .flatMap(({ declarations }) => declarations ?? []).filter(ts.isMethodSignature)
        .forEach((method) => IMPLEMENTED.add(method));
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
}

function isMethod(symbol: ts.Symbol | undefined): boolean {
  return symbol?.declarations?.some((each) =>
    IMPLEMENTED.has(each) || ts.isMethodDeclaration(each) && ts.isClassLike(each.parent) &&
      !each.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.StaticKeyword)
  ) === true;
}

/** Returns whether a method is called, asked for a member (`bind`), compared, tested or replaced. */
function isUsedInPlace(node: ts.PropertyAccessExpression): boolean {
  const { parent } = node;
  if (ts.isCallExpression(parent) || ts.isPropertyAccessExpression(parent)) {
    return parent.expression === node;
  }
  if (!ts.isBinaryExpression(parent)) return ts.isTypeOfExpression(parent);
  const { kind } = parent.operatorToken;
  return kind === ts.SyntaxKind.EqualsEqualsEqualsToken ||
    kind === ts.SyntaxKind.AmpersandAmpersandToken && parent.left === node ||
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

let project: Promise<ts.Program> | undefined;

/** Returns the sources of the project with their types, which take seconds to find out. */
function projectProgram(): Promise<ts.Program> {
  return project ??= (async () => {
    const folders = await Promise.all(["src", "builtin"].map((name) => sourcesIn(repoFile(name))));
    return ts.createProgram(folders.flat(), OPTIONS);
  })();
}

Deno.test("no method of a class is taken from its object without being bound", async () => {
  const found = placesIn(await projectProgram(), isUnbound);
  assert.deepEqual(found.map((place) => relative(repoFile(""), place)), []);
});

Deno.test("no object is passed where a method of its class is expected as a function", async () => {
  const places = placesIn(await projectProgram(), isPassedForFunctions);
  assert.deepEqual(places.map((place) => relative(repoFile(""), place)), []);
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
      "interface Lid { lift(): void }",
      "export class Cap implements Lid { lift() {} }",
      "interface Plain { lift(): void }",
      "export const lifted = ({ lift }: Lid) => lift;",
      "export const plain = ({ lift }: Plain) => lift;",
    ];
    await Deno.writeTextFile(file, lines.join("\n"));
    const found = placesIn(ts.createProgram([file], OPTIONS), isUnbound).map((place) =>
      place.slice(file.length + 1)
    );
    assert.deepEqual(found, ["3: open", "4: box.open", "5: box.open", "12: lift"]);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("an object that is passed for its functions is found, and one for its methods is not", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const file = join(folder, "box.ts");
    const lines = [
      "class Box { size = 1; open() { return this.size; } readonly close = () => this.size; }",
      "const box = new Box();",
      "declare function functions(one: { readonly open?: () => number }): void;",
      "declare function methods(one: { open(): number }): void;",
      "declare function fields(one: { readonly close: () => number }): void;",
      "functions(box);",
      "methods(box);",
      "fields(box);",
      "functions({ open: () => box.open() });",
    ];
    await Deno.writeTextFile(file, lines.join("\n"));
    const places = placesIn(ts.createProgram([file], OPTIONS), isPassedForFunctions)
      .map((place) => place.slice(file.length + 1));
    assert.deepEqual(places, ["6: box"]);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("no object whose members are getters is copied by a spread", async () => {
  const found = placesIn(await projectProgram(), isLossyCopy);
  assert.deepEqual(found.map((place) => relative(repoFile(""), place)), []);
});

Deno.test("a copy of an object with getters is found, and one of a plain object is not", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const file = join(folder, "box.ts");
    const lines = [
      "class Box { size = 1; get open(): boolean { return this.size > 0; } }",
      "const box = new Box();",
      "const plain = { size: 1 };",
      "const copy = { ...box, size: 2 };",
      "const { size, ...rest } = box;",
      "export const used = [copy, size, rest, { ...plain }];",
    ];
    await Deno.writeTextFile(file, lines.join("\n"));
    const found = placesIn(ts.createProgram([file], OPTIONS), isLossyCopy).map((place) =>
      place.slice(file.length + 1)
    );
    assert.deepEqual(found, ["4: ...box", "5: ...rest"]);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

import assert from "node:assert/strict";
import { lastExpression } from "./last_expression.ts";

const AsyncFunction = (async () => {}).constructor as new (body: string) => () => Promise<unknown>;

function compiles(body: string): boolean {
  try {
    new AsyncFunction(`"use strict";\n${body}\n`);
    return true;
  } catch {
    return false;
  }
}

function last(code: string): string | undefined {
  const span = lastExpression(code, compiles);
  return span && code.slice(span.start, span.end).trim();
}

const CASES: readonly (readonly [code: string, last: string | undefined])[] = [
  ["1+1", "1+1"],
  ["1+1;", "1+1"],
  ["1+1;;; // two", "1+1"],
  ["const a = 1;\na", "a"],
  ["const a = 1; a", "a"],
  ["const a = 1\na\n", "a"],
  ["const a = 1\n+ 2", undefined],
  ["a\n+ b", "a\n+ b"],
  ["a // c\n+ b", "a // c\n+ b"],
  ["a; // c\n+ b", "+ b"],
  ["a /* c */\n+ b", "a /* c */\n+ b"],
  ["foo\n  .bar()\n  .baz()", "foo\n  .bar()\n  .baz()"],
  ["const x = [1]\n;[2].map(f)", "[2].map(f)"],
  ["const x = y\n[2].map(f)", undefined],
  ["if (a) { b }\n[1]", "[1]"],
  ["if (a) { b } else { c }", undefined],
  ["if (a) b\nelse c", undefined],
  ["if (a)\n  b", undefined],
  ["for (const a of b)\n  c(a)", undefined],
  ["while (a) b()\nc", "c"],
  ["x = {a: 1}\n+b", "x = {a: 1}\n+b"],
  ["function f() {}\n(1 + 2)", "(1 + 2)"],
  ["const f = function () {}\n(1 + 2)", undefined],
  ["const f = () => {}\n(1 + 2)", "(1 + 2)"],
  ["const f = async () => { return 1; }\nf()", "f()"],
  ["function f() {}", undefined],
  ["a;\nfunction f() {}", undefined],
  ["/* c */ class A {}", undefined],
  ["const a = 1;\n({ a, b: 2 })", "({ a, b: 2 })"],
  ["const a = 1;\n{ b: a }", "{ b: a }"],
  // It is not valid where a statement begins.
  ["const a = 1;\n{ a, b: 2 }", undefined],
  ["{ a: 1 }", "{ a: 1 }"],
  ["const a = 1;\n{ b(); }", undefined],
  ["a // x; y", "a // x; y"],
  ["a; // x; y", "a"],
  ["a; /* x; y */", "a"],
  ['"http://a;b"', '"http://a;b"'],
  ['f("http://a;b"); "//c"', '"//c"'],
  ["f(`a;\nb`)", "f(`a;\nb`)"],
  ["f();\n`a;\n${b;\n}`", undefined],
  ["f();\n`a;\n${b}\nc`", "`a;\n${b}\nc`"],
  ["a\n`b`", "a\n`b`"],
  ["a\n/b/g.c(d)", "a\n/b/g.c(d)"],
  ["f(/;\\n}/)", "f(/;\\n}/)"],
  ["return 1", undefined],
  ["if (a) return 1\nb", "b"],
  ["const a = await b;\nawait c(a)", "await c(a)"],
  ["a, b", "a, b"],
  ["x = 5", "x = 5"],
  ["throw a", undefined],
  ["let a = 1, b = 2", undefined],
  ["try { a } catch { b }", undefined],
  ["do a; while (b)", undefined],
  ["l: a", undefined],
  ["", undefined],
  ["// nothing", undefined],
  ["a;\n// the end\n", "a"],
  ["a\n/* the\nend */", "a\n/* the\nend */"],
  ["const s = ';\\n';\ns", "s"],
  ["x\n++y", "++y"],
  ["async () => 1", "async () => 1"],
  ["a) + (b", undefined],
  ["}); evil(); (async () => {", undefined],
];

Deno.test("lastExpression() finds the expression that ends the code, and nothing else", () => {
  for (const [code, expected] of CASES) assert.equal(last(code), expected, JSON.stringify(code));
});

Deno.test("lastExpression() stops early on long code", () => {
  const long = Array.from({ length: 20_000 }, (_, at) => `  f(${at},\n  {a: ${at}}`).join(",\n");
  const since = performance.now();
  assert.equal(last(`${long};\nconst x = 1`), undefined);
  assert.ok(performance.now() - since < 6_000);
});

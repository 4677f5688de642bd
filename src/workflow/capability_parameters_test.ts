import assert from "node:assert/strict";
import { findToolNames, parametrize } from "./capability_parameters.ts";

const code = (text: string, named = {}) => parametrize({ kind: "code", text }, named);
const plan = (tasks: object[], named = {}) =>
  parametrize({ kind: "plan", text: JSON.stringify({ tasks }) }, named);

Deno.test("parametrize() finds literals and leaves comments, regular expressions and templates", () => {
  const text = 'const a = \'x\\n\'; // "no"\nconst r = /"no"/g.test(a) ? 1_000 : a / 2 / 3;' +
    'const t = `plain`; const u = `in ${f("deep")} out`; String.raw`no`;' +
    ' const o = {"k": true, n: .5}; o.true; x => /[/"]/.test("it\'s")';
  const values = ["x\n", 1000, 2, 3, "plain", "k", true, 0.5, "it's"];
  const named = Object.fromEntries(values.map((value, at) => [`p${at}`, value]));
  assert.equal(
    code(text, named).text,
    'const a = args.p0; // "no"\nconst r = /"no"/g.test(a) ? args.p1 : a / args.p2 / args.p3;' +
      'const t = args.p4; const u = `in ${f("deep")} out`; String.raw`no`;' +
      ' const o = {[args.p5]: args.p6, n: args.p7}; o.true; x => /[/"]/.test(args.p8)',
  );
  for (const value of ["no", "deep"]) assert.throws(() => code(text, { value }), /not a literal/);
});

Deno.test("parametrize() inserts no value into code and replaces no part of a longer text", () => {
  const text = `const a = "x'; evil(); '"; // 'it' "\nf('it', "a 'it' b", \`'it'\`)`;
  const made = code(text, { it: "it", "other": "x'; evil(); '" });
  assert.equal(
    made.text,
    `const a = args.other; // 'it' "\nf(args.it, "a 'it' b", \`'it'\`)`,
  );
  assert.throws(() => code("return 1", { "x;evil()": 1 }), /use letters/);
});

Deno.test("parametrize() replaces the literals of code by arguments", () => {
  const made = code(
    `const c = "Paris"; // Paris\nreturn mcp.w.get({ city: c, days: 3, "Paris": 1 })`,
    {
      city: "Paris",
      days: 3,
    },
  );
  assert.equal(
    made.text,
    "const c = args.city; // Paris\nreturn mcp.w.get({ city: c, days: args.days, [args.city]: 1 })",
  );
  assert.deepEqual(made.parameters, {
    type: "object",
    properties: { city: { type: "string" }, days: { type: "number" } },
    required: ["city", "days"],
    additionalProperties: false,
  });
  assert.deepEqual(made.notes, ['city: "Paris" is replaced in 2 places']);
});

Deno.test("parametrize() reports literals that are missing, ambiguous or part of a longer text", () => {
  const cases: [string, object, RegExp][] = [
    ["return 1", { city: "Paris" }, /"city": "Paris" .*a literal/],
    ["return 'To Paris'", { city: "Paris" }, /inside a longer text/],
    ["return 1 + 1", { n: 1 }, /"1" occurs 2 times/],
    ["return 'a'", { one: "a", two: "a" }, /has the same value/],
    ["return args.day", {}, /"day": the text uses it/],
    ["return 'a'", { "a-b": "a" }, /use letters/],
    ["const args = 1; return 'a'", { a: "a" }, /declares its own variable `args`/],
    ["return [1]", { list: [1] }, /not a literal/],
  ];
  for (const [text, named, said] of cases) assert.throws(() => code(text, named), said);
  assert.deepEqual(code("f('Paris'); g('x/Paris')", { city: "Paris" }).notes, [
    'city: "Paris" stays inside longer texts: 1',
  ]);
  assert.equal(code("return args.day + 1", { day: 3 }).text, "return args.day + 1");
});

Deno.test("parametrize() replaces the values of a plan by references", () => {
  const made = plan([
    { id: "a", tool: "w:get", arguments: { city: "Paris", deep: [{ at: "Paris" }] } },
    { id: "b", tool: "w:get", arguments: { from: { $ref: "a#/x" } }, for_each: ["one"] },
  ], { city: "Paris", all: ["one"] });
  assert.deepEqual(JSON.parse(made.text).tasks, [
    {
      id: "a",
      tool: "w:get",
      arguments: { city: { $ref: "$params#/city" }, deep: [{ at: { $ref: "$params#/city" } }] },
    },
    {
      id: "b",
      tool: "w:get",
      arguments: { from: { $ref: "a#/x" } },
      for_each: { $ref: "$params#/all" },
    },
  ]);
  assert.throws(
    () => plan([{ id: "w:get", tool: "w:get" }], { a: "w:get" }),
    /not a literal/,
  );
  assert.throws(
    () => plan([{ id: "a", tool: "w:get", arguments: { $ref: "$params#/day" } }]),
    /"day": the text uses it/,
  );
});

Deno.test("finding the literals and tools of a text takes linear time", () => {
  const most = 250_000;
  for (
    const piece of ["=/[", "mcp".padEnd(most), "mcp.a".padEnd(most), "`${", "/*", "'\\\\", "1e+"]
  ) {
    const text = piece.repeat(most / piece.length);
    const since = performance.now();
    findToolNames({ kind: "code", text });
    assert.throws(() => code(text, { city: "Paris" }), /is not a literal/);
    const ms = performance.now() - since;
    assert.ok(ms < 8_000, `${piece.trim()}: ${ms} ms`);
  }
});

import assert from "node:assert/strict";
import fc from "fast-check";
import { argumentsRule, parsePattern } from "../core/pattern.ts";
import { toolId } from "../core/tool_id.ts";
import { parse } from "jsonc-parser";
import { newText, type RuleLists, textWithRules } from "./_rule_text.ts";

const TOOL = toolId("n", "n");
/** A rule that fills a line. */
const LONG = `a:${"a".repeat(80)}`;
const DEFAULTS: RuleLists = { allow: ["d:d"], ask: ["*"], deny: [] };

/** A rule whose text contains everything that could confuse an editor of JSON with comments. */
const EXACT = argumentsRule(toolId("shell", "exec"), {
  args: ["// no", "/* comment */", '"quoted", ["a"]', "back\\slash\\"],
  command: "a,b;\n]}",
  "n:n": ",",
}) ?? "";

function edited(text: string, rule: string = TOOL): Promise<string> {
  return textWithRules(text, { rules: [rule] }, DEFAULTS);
}

Deno.test("textWithRules() adds the tool at the start of the list, which stays on one line if it is short", async () => {
  const table: [string, string][] = [
    ["[]", '[\n    "n:n"\n  ]'],
    ['["a:a"]', '["n:n", "a:a"]'],
    [`["${LONG}"]`, `[\n    "n:n",\n    "${LONG}"\n  ]`],
    ['[\n    "a:a"\n  ]', '[\n    "n:n",\n    "a:a"\n  ]'],
    [
      '[\n    "a:a", // a, ]\n    /* , */ "b:b",\n  ]',
      '[\n    "n:n",\n    "a:a", // a, ]\n    /* , */ "b:b",\n  ]',
    ],
    ["[ // none\n  ]", '[ // none\n    "n:n"\n  ]'],
    ['[\n    // about a\n    "a:a"\n  ]', '[\n    "n:n",\n    // about a\n    "a:a"\n  ]'],
  ];
  for (const [before, after] of table) {
    const text = (list: string) => `{\n  "permissions": {\n  "allow": ${list}\n  }\n}`;
    const [said, wanted] = [await edited(text(before)), text(after)];
    assert.equal(said.replace(/^ +/gm, ""), wanted.replace(/^ +/gm, ""));
  }
});

Deno.test("textWithRules() removes an equal ask rule with its comma and keeps comments", async () => {
  const table: [string, string][] = [
    ['["n:n"]', "[]"],
    ['["a:a", "n:n"]', '["a:a"]'],
    ['["n:n", "a:a"]', '["a:a"]'],
    ['["a:a", "n:n", "c:c"]', '["a:a", "c:c"]'],
    ['["a:a", "n:n", ]', '["a:a", ]'],
    ['["a:a" /* , */, "n:n"]', '["a:a" /* , */]'],
    ['["n:n", "a:a", "n:n"]', '["a:a"]'],
    ['[\n  "a:a",\n  "n:n",\n  "c:c"\n]', '[\n  "a:a",\n  "c:c"\n]'],
    ['[\n  "a:a",\n  "n:n"\n]', '[\n  "a:a"\n]'],
    ['[\r\n  "a:a",\r\n  "n:n" // n\r\n]', '[\r\n  "a:a" // n\r\n]'],
    ['[\n  "a:a", // a\n  "n:n", "b:b"\n]', '[\n  "a:a", // a\n  "b:b"\n]'],
    ['[\n  "a:a", // a\n  "n:n"\n]', '[\n  "a:a" // a\n]'],
  ];
  for (const [before, after] of table) {
    const text = (list: string) => `{"permissions": {"allow": ["n:n"], "ask": ${list}}}`;
    assert.equal(await edited(text(before)), text(after));
  }
});

Deno.test("textWithRules() writes a rule with exact arguments that is parsed unchanged", async () => {
  const before =
    '{ // mine\n  "permissions": {\n    "ask": ["*"], // all\n    "allow": ["a:a"]\n  }\n}';
  const after = await edited(before, EXACT);
  assert.deepEqual(after.match(/\/\/ mine|\/\/ all$/gm), ["// mine", "// all"]);
  const { allow } = parse(after).permissions;
  assert.deepEqual(allow, [EXACT, "a:a"]);
  assert.deepEqual(parsePattern(allow[0] ?? ""), parsePattern(EXACT));
  assert.equal(await edited(after, EXACT), after);
  assert.deepEqual(JSON.parse(await edited("{}", EXACT)).permissions.allow, [EXACT, "d:d"]);
  assert.deepEqual(JSON.parse(newText({ rules: [EXACT] }, DEFAULTS)).permissions.allow, [
    EXACT,
    "d:d",
  ]);
});

Deno.test("textWithRules() removes only the ask rule with the same arguments, in any spelling", async () => {
  const [name = "", json = ""] = EXACT.split(/(?<=exec\()/);
  const spread = `${name}${JSON.stringify(JSON.parse(json.slice(0, -1)), null, 1)})`;
  const kept = ["shell:exec", "shell:*", 'shell:exec({"command":"a"})', "shell:exec(command=a)"];
  const ask = [spread, ...kept, EXACT, spread].map((rule) => JSON.stringify(rule));
  const list = `[\n  ${ask.join(', // ], "\n  ')}\n]`;
  const after = await edited(`{"permissions": {"allow": [], "ask": ${list}}}`, EXACT);
  assert.deepEqual(parse(after).permissions, { allow: [EXACT], ask: kept });
  assert.equal(after.match(/\/\/ \], "/g)?.length, 6);
  // An equal rule with other white space allows it already.
  const allowed = JSON.stringify({ permissions: { allow: [spread] } });
  assert.equal(await edited(allowed, EXACT), allowed);
});

Deno.test("textWithRules() keeps a byte order mark and creates missing keys", async () => {
  const marked = await edited('\uFEFF{"permissions": {"allow": []}}');
  assert.deepEqual([marked[0], JSON.parse(marked.slice(1))], ["\uFEFF", {
    permissions: { allow: ["n:n"] },
  }]);
  const some = JSON.parse(await edited('{"permissions": {"deny": ["x:*"]}}'));
  assert.deepEqual(some, { permissions: { deny: ["x:*"], allow: ["n:n"] } });
  const whole = { permissions: { allow: ["n:n", "d:d"], ask: ["*"], deny: [] } };
  assert.equal(await edited("{}"), JSON.stringify(whole, null, 2));
  assert.equal(await edited("{\n}\n"), `${JSON.stringify(whole, null, 2)}\n`);
});

Deno.test("textWithRules() changes only the two lists, in any layout of the text", async () => {
  const blank = fc.constantFrom("", " ", "\n", "\r\n  ", " // c, ]\n", "/* , [ */", "\t");
  const name = fc.constantFrom("a:a", "b:b", "n:n", "c:*", JSON.stringify(EXACT).slice(1, -1));
  const rule = fc.constantFrom(TOOL, EXACT);
  const list = fc.array(fc.tuple(blank, name, blank), { maxLength: 4 }).chain((items) =>
    fc.record({ inner: blank, comma: fc.boolean() }).map(({ inner, comma }) => {
      const body = items.map(([before, text, after]) => `${before}"${text}"${after}`).join(",");
      return `[${body}${comma && items.length > 0 ? "," : ""}${inner}]`;
    })
  );
  const layout = fc.record({ allow: list, ask: list, gap: blank, end: blank, rule });
  await fc.assert(
    fc.asyncProperty(layout, async ({ allow, ask, gap, end, rule }) => {
      const head = `${gap}{"x":[1,2,],${gap}"permissions":${gap}{"allow"${gap}:${allow}${gap},`;
      const text = `${head}"ask":${ask}${gap}}${end},"z":{}}${end}`;
      // It reads its own result again and throws if anything else differs.
      const after = await edited(text, rule);
      const comments = (said: string) => said.match(/\/\/ c, \]|\/\* , \[ \*\//g)?.length ?? 0;
      assert.equal(comments(after), comments(text));
      assert.equal(await edited(after, rule), after);
    }),
    { numRuns: 500 },
  );
});

Deno.test("textWithRules() adds several rules in their order, and only those that are missing", async () => {
  const text = '{"permissions":{"allow":["b:b"],"ask":["c:c","a:a"],"deny":[]}}';
  const rules = ["a:a", "b:b", "c:c", "a:a"];
  const { permissions } = parse(await textWithRules(text, { rules }, DEFAULTS));
  assert.deepEqual(permissions, { allow: ["a:a", "c:c", "b:b"], ask: [], deny: [] });
  const created = JSON.parse(newText({ rules }, DEFAULTS)).permissions;
  assert.deepEqual(created.allow, ["a:a", "b:b", "c:c", "d:d"]);
});

Deno.test("textWithRules() adds a deny rule and leaves the other lists unchanged", async () => {
  const denied = { rules: [TOOL], list: "deny" } as const;
  for (const deny of ["", ',"deny":["x:x"]']) {
    const text = `{"permissions":{"allow":["n:n"],"ask":["n:n"]${deny}}}`;
    const { permissions } = parse(await textWithRules(text, denied, DEFAULTS));
    const others = deny === "" ? [] : ["x:x"];
    assert.deepEqual(permissions, { allow: ["n:n"], ask: ["n:n"], deny: [TOOL, ...others] });
  }
  assert.deepEqual(parse(await textWithRules("{}", denied, DEFAULTS)).permissions, {
    ...DEFAULTS,
    deny: [TOOL],
  });
});

import assert from "node:assert/strict";
import fc from "fast-check";
import type { JsonObject } from "../core/json.ts";
import { toolId } from "../core/tool_id.ts";
import { fullText, shortText } from "./_question.ts";
import type { Subject } from "./subject.ts";
import { assertGolden } from "../../tests/kit/golden.ts";

function subject(given: JsonObject, changes: Partial<Subject> = {}): Subject {
  return {
    tool: toolId("filesystem", "write_file"),
    arguments: given,
    definition: "d",
    rules: "r",
    actor: "local",
    workspace: "/home/me/work",
    ...changes,
  };
}

Deno.test("fullText() names server and tool before facts and arguments", () => {
  const facts = ["Kind: a built-in module", "Permissions: write in the workspace"];
  const text = fullText([subject({ path: "a.txt", lines: [1, 2] }, { facts, actor: "ada" })]);
  for (const value of ["filesystem", "write_file", "/home/me/work", "ada", "a.txt"]) {
    assert.ok(text.includes(`"${value}"\n`), value);
  }
  for (const fact of [...facts, '"lines": [1,2]']) assert.ok(text.includes(`${fact}\n`), fact);
  assertGolden("question/a call of a built-in", text);
});

Deno.test("fullText() lists every call of a batch", () => {
  const text = fullText([subject({}), subject({ path: "b" }, { tool: toolId("git", "add") })]);
  assert.match(
    text,
    /^PML asks: may these 2 calls run\? [^\n]+\n\nCall 1\n\n {4}Server: "filesystem"\n/,
  );
  assert.match(text, /Arguments: none\n\nCall 2\n\n {4}Server: "git"\n {4}Tool: "add"\n/);
});

Deno.test("the first line of a question names server and tool, in few characters", () => {
  const first = (subjects: readonly Subject[]) => fullText(subjects).split("\n")[0] ?? "";
  const of = (name: string) => subject({}, { tool: toolId("s", name) });
  assert.match(first([subject({}, { isSaved: true })]), /"filesystem:write_file" .* tool\?$/);
  const many = ["a", "b", "c", "d", "e"].map(of);
  assert.match(first(many), /5 calls run\? "s:a", "s:b", "s:c", .*2 more$/);
  assert.match(first([of("a"), of("a")]), /2 calls run\? "s:a"$/);
  const odd = first([of(`x\n\u202e\u200b${"long".repeat(50)}`)]);
  assert.ok(odd.length < 150 && odd.includes("x\\u{a}\\u{202e}\\u{200b}long"), odd);
});

Deno.test("fullText() escapes invisible and misleading characters", () => {
  const table: [string, string][] = [
    ["a\nServer: b", String.raw`"a\nServer: b"`],
    ["\u001b[2K", String.raw`"\u001b[2K"`],
    ["\u009b2K", String.raw`"\u{9b}2K"`],
    ["\u202egpj", String.raw`"\u{202e}gpj"`],
    ["\u2066a", String.raw`"\u{2066}a"`],
    ["a\u200bb", String.raw`"a\u{200b}b"`],
    ["\u2028a", String.raw`"\u{2028}a"`],
    ["\u{e0041}", String.raw`"\u{e0041}"`],
    ["a\u3164b", String.raw`"a\u{3164}b"`],
    ["a\u2800b", String.raw`"a\u{2800}b"`],
    ["a\u00a0b", String.raw`"a\u{a0}b"`],
    ["a\ufe0fb", String.raw`"a\u{fe0f}b"`],
    [`a${" ".repeat(18)}b`, `"a${" ".repeat(16)}${String.raw`\u{20}\u{20}`}b"`],
  ];
  for (const [value, shown] of table) {
    assert.ok(fullText([subject({ x: value })]).includes(`"x": ${shown}\n`), shown);
    // The name of an argument can hide text as well as its value can.
    assert.ok(fullText([subject({ [value]: 1 })]).includes(`      ${shown}: 1\n`), shown);
  }
});

Deno.test("fullText() indents every line with text of servers or clients", () => {
  const text = fc.string({ unit: "binary", maxLength: 60 });
  fc.assert(fc.property(text, text, text, (key, value, fact) => {
    const asked = subject({ [key]: value }, { facts: [fact], workspace: fact, actor: value });
    const lines = fullText([asked]).split("\n");
    const [title, ...rest] = lines;
    assert.equal(title, 'PML asks: may "filesystem:write_file" run?');
    for (const line of rest) assert.match(line, /^$|^ {4}/);
    assert.equal(lines.filter((line) => line.startsWith("    Server: ")).length, 1);
    assert.doesNotMatch(lines.join(""), /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
  }));
});

Deno.test("fullText() has linear length for deeply nested arguments", () => {
  const deep = JSON.parse("[".repeat(2_000) + "]".repeat(2_000)) as JsonObject;
  assert.ok(fullText([subject({ deep })]).length < 5_000);
  assert.ok(fullText([subject({ large: "x".repeat(1_000_000) })]).length < 1_001_000);
});

Deno.test("fullText() marks arguments that look like keys (GX19)", () => {
  const key = `ghp_${"a1B2c3D4".repeat(4)}`;
  const text = fullText([
    subject({ plain: "a", deep: { list: [`x\n${key}`] }, [key]: 1, url: "" }),
  ]);
  const lines = text.split("\n").map((line) => line.trim());
  const marked = lines.flatMap((line, at) => line.startsWith("^ ") ? [lines[at - 1]?.[1]] : []);
  assert.deepEqual(marked, ["d", "g"]);
  assert.equal(lines.filter((line) => /^\^ .* a key$/.test(line)).length, 2);
});

Deno.test("shortText() names each tool and refers to the full question", () => {
  const text = shortText([subject({ path: "a" }), subject({})], 9_000);
  assert.equal(text.match(/Tool: "write_file"/g)?.length, 2);
  assert.match(text, /9000 characters: `pml approve`/);
});

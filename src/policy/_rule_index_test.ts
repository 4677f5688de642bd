import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import type { Verdict } from "../protocol/verdict.ts";
import { parseExact } from "../core/exact_json.ts";
import type { JsonObject } from "../core/json.ts";
import { matches, narrowness, parsePattern, type Pattern } from "../core/pattern.ts";
import { type ToolId, toolId } from "../core/tool_id.ts";
import { makeJudge, type Rule, type RuleSet } from "./rules.ts";

const ID = toolId("fs", "read");
const known = () => true;

function list(patterns: readonly string[], source = "file"): Rule[] {
  return patterns.map((text) => ({ pattern: parsePattern(text), source }));
}

function set(lists: Partial<Record<keyof RuleSet, readonly string[]>>): RuleSet {
  return {
    deny: list(lists.deny ?? []),
    ask: list(lists.ask ?? []),
    allow: list(lists.allow ?? []),
  };
}

/** Lists every combination of rules of different widths for one list. */
function widths(more: readonly string[] = []): string[][] {
  const all = ["fs:read", "fs:*", "*", ...more];
  const ways = Array.from({ length: 2 ** all.length }, (_, bits) => bits);
  return ways.map((bits) => all.filter((_, at) => bits & (1 << at)));
}

/**
 * Returns whether a rule matches arguments, none of which is a path. A simple reference
 * implementation for short globs.
 */
function holds(pattern: Pattern, args: JsonObject, unclear: boolean): boolean {
  if (pattern.kind === "arguments") {
    const json = pattern.text.slice(pattern.text.indexOf("(") + 1, -1);
    return isDeepStrictEqual(JSON.parse(json), args);
  }
  if (pattern.kind !== "conditions") return true;
  return pattern.conditions.every(({ name, glob }) => {
    const value = Object.hasOwn(args, name) ? args[name] : undefined;
    const text = typeof value === "string" ? value : JSON.stringify(value);
    if (text === undefined || typeof value === "object" || /\p{Cc}/u.test(text)) return unclear;
    if (name === "command" && /[;|]/.test(text)) return unclear;
    const parts = glob.replace(/[.$]/g, "\\$&").split("**");
    return new RegExp(`^${parts.join("[^]<").replaceAll("*", "[^/]<").replaceAll("<", "*")}$`)
      .test(text);
  });
}

/** A simple reference implementation of the precedence of rules. */
function reference(rules: RuleSet, id: ToolId, args: JsonObject = {}): Verdict["kind"] {
  const found = (name: keyof RuleSet) =>
    rules[name].filter(({ pattern }) =>
      matches(pattern, id) && holds(pattern, args, name !== "allow")
    );
  const width = (name: keyof RuleSet) =>
    Math.max(-1, ...found(name).map((rule) => narrowness(rule.pattern)));
  if (found("deny").length > 0) return "deny";
  if (width("allow") === 0 && id.startsWith("shell:")) return "ask";
  return width("allow") > width("ask") ? "allow" : "ask";
}

function triples<T>(list: readonly T[]): (readonly [T, T, T])[] {
  return list.flatMap((one) =>
    list.flatMap((two) => list.map((three) => [one, two, three] as const))
  );
}

Deno.test("makeJudge() follows the order of precedence with conditions and exact arguments (PM6)", () => {
  const narrow = [["fs:read(mode=r*)"], ['fs:read({"mode":"rw"})']];
  const given: JsonObject[] = [{ mode: "rw" }, { mode: "w" }, {}, { mode: ["rw"] }];
  for (const [deny, ask, allow] of narrow.flatMap((one) => triples(widths(one)))) {
    const rules = set({ deny, ask, allow });
    const judge = makeJudge(rules, { known });
    for (const args of given) {
      const what = JSON.stringify({ deny, ask, allow, args });
      assert.equal(judge(ID, args).kind, reference(rules, ID, args), what);
    }
  }
});

Deno.test("makeJudge() agrees with the reference on any rules and arguments (PM5, PM6)", () => {
  const glob = fc.array(fc.constantFrom("a", "b", "/", "*", "**", ".", "1", "true"), {
    maxLength: 4,
  }).map((parts) => parts.join("")).filter((text) => !text.includes("**/"));
  const name = fc.constantFrom("mode", "command", "n");
  const scalar = fc.oneof(
    fc.array(fc.constantFrom("a", "b", "/", ".", "|", "\n"), { maxLength: 4 })
      .map((letters) => letters.join("")),
    fc.constantFrom(1, true, 11),
  );
  const value = fc.oneof({ arbitrary: scalar, weight: 6 }, fc.constant(["a"]), fc.constant({}));
  const args = fc.dictionary(name, value, { maxKeys: 3, noNullPrototype: true });
  const condition = fc.tuple(name, glob).map((pair) => pair.join("="));
  const narrow = fc.oneof(
    fc.array(condition, { minLength: 1, maxLength: 3 }).map((list) => list.join(", ")),
    args.map((each) => JSON.stringify(each)),
  ).map((text) => `fs:read(${text})`);
  const pattern = fc.oneof(narrow, narrow, fc.constantFrom("*", "fs:*", "fs:read"));
  const patterns = fc.array(pattern, { maxLength: 4 });
  fc.assert(
    fc.property(
      fc.record({ deny: patterns, ask: patterns, allow: patterns }),
      args,
      (lists, given) => {
        const rules = set(lists);
        assert.equal(makeJudge(rules, { known })(ID, given).kind, reference(rules, ID, given));
      },
    ),
    { numRuns: 5_000 },
  );
});

Deno.test("makeJudge() applies allow rules to certain meanings only, and deny and ask rules to possible ones", () => {
  const unclear: JsonObject[] = [
    {},
    { Command: "git" },
    { command: null },
    { command: ["git"] },
    { command: { git: 1 } },
    { command: "git\nrm" },
    { command: "git\0" },
    { command: "git \ud800" },
    { command: "git; rm" },
    { command: "git `rm`" },
    { command: "git $(rm)" },
    { command: "git | sh" },
    { command: "git > x" },
    { command: `git ${"x".repeat(5_000)}` },
  ];
  const judged = (lists: Parameters<typeof set>[0], args: JsonObject) =>
    makeJudge(set(lists), { known })(ID, args).kind;
  for (const args of unclear) {
    const what = JSON.stringify(args).slice(0, 80);
    assert.equal(judged({ allow: ["fs:read(command=**)"] }, args), "ask", what);
    assert.equal(judged({ allow: ["*"], deny: ["fs:read(command=none)"] }, args), "deny", what);
    assert.equal(judged({ allow: ["*"], ask: ["fs:read(command=none)"] }, args), "ask", what);
    assert.equal(
      judged({ allow: [`fs:read(${JSON.stringify({ command: "git" })})`] }, args),
      "ask",
    );
  }
  const clear = { command: "git status", n: 3, on: true };
  assert.equal(judged({ allow: ["fs:read(command=git **, n=3, on=true)"] }, clear), "allow");
  assert.equal(judged({ allow: ["*"], deny: ["fs:read(command=rm **)"] }, clear), "allow");
  // Only conditions reject shell characters; exact arguments were shown unchanged.
  const shell = { command: "git log | head" };
  assert.equal(judged({ allow: [`fs:read(${JSON.stringify(shell)})`] }, shell), "allow");
  assert.equal(judged({ allow: ["fs:read(mode=**)"] }, { mode: "a | b" }), "allow");
});

Deno.test("exact arguments are compared as JSON values, not as text", () => {
  const args = { command: "git", args: ["status"], n: 1, deep: { b: 1, a: -0 } };
  const written =
    '{ "n": 1.0, "args": ["status"], "deep": {"a": 0, "b": 1}, "command": "g\\u0069t" }';
  const judge = makeJudge(set({ allow: [`fs:read(${written})`] }));
  assert.equal(judge(ID, args).kind, "allow");
  const others: JsonObject[] = [
    { ...args, more: 1 },
    { ...args, args: ["status", ""] },
    { ...args, args: "status" },
    { ...args, n: "1" },
    { ...args, deep: {} },
    JSON.parse('{"__proto__":{"command":"git"}}'),
  ];
  for (const other of others) assert.equal(judge(ID, other).kind, "ask", JSON.stringify(other));
  assert.equal(judge(toolId("fs", "write"), args).kind, "ask");
});

Deno.test("rules compare numbers by their digits", () => {
  const big = (digits: string) => parseExact(`{"id":${digits},"deep":[1e400]}`) as JsonObject;
  const [id, near, other] = ["725653563933458432", "725653563933458450", "725653563933459999"];
  const table: [Parameters<typeof set>[0], Record<string, string>][] = [
    [{ allow: [`fs:read({"id":${id},"deep":[1e400]})`] }, { [id]: "allow", [near]: "ask" }],
    [{ allow: [`fs:read({"id":${id}.0,"deep":[10e399]})`] }, { [id]: "allow", [near]: "ask" }],
    [{ allow: [`fs:read(id=${id})`] }, { [id]: "allow", [`${id}.0`]: "allow", [near]: "ask" }],
    [{ deny: [`fs:read(id=${id})`] }, { [id]: "deny", [`${id}.0`]: "deny", [other]: "ask" }],
  ];
  for (const [lists, kinds] of table) {
    for (const [digits, kind] of Object.entries(kinds)) {
      const judge = makeJudge(set(lists), { known });
      assert.equal(judge(ID, big(digits)).kind, kind, `${JSON.stringify(lists)} ${digits}`);
    }
  }
});

Deno.test("deny and ask rules for a number also match numbers that a server may round to it", () => {
  const [id, near] = ["725653563933458432", "725653563933458430"];
  const args = (digits: string) => parseExact(`{"id":${digits}}`) as JsonObject;
  for (const rule of [`fs:read({"id":${id}})`, `fs:read({"id":${near}})`, `fs:read(id=${id})`]) {
    for (const kind of ["deny", "ask"]) {
      const judge = makeJudge(set({ allow: ["*"], [kind]: [rule] }), { known });
      assert.equal(judge(ID, args(near)).kind, kind, `${kind} ${rule}`);
    }
  }
});

Deno.test("arguments that cannot be compared match every exact deny and ask rule, and no allow rule", () => {
  const deep = JSON.parse(`${'{"a":'.repeat(50_000)}1${"}".repeat(50_000)}`);
  for (const args of [{ a: "\ud800" }, { a: Infinity }, deep]) {
    const judged = (lists: Parameters<typeof set>[0]) =>
      makeJudge(set(lists), { known })(ID, args).kind;
    assert.equal(judged({ allow: ["*"], deny: ['fs:read({"b":1})'] }), "deny");
    assert.equal(judged({ allow: ["*"], ask: ['fs:read({"b":1})'] }), "ask");
    assert.equal(judged({ allow: ['fs:read({"b":1})'] }), "ask");
    assert.equal(judged({ allow: ["*"] }), "allow");
  }
});

Deno.test("a judge without arguments returns the verdict for any arguments and the rules it depends on", () => {
  const allow = "fs:read(path=src/**)";
  const table: [Parameters<typeof set>[0], Verdict["kind"], string][] = [
    [{ allow: [allow] }, "ask", allow],
    [{ allow: [allow, "fs:*"] }, "allow", "fs:*"],
    [{ ask: [allow], allow: ["fs:read"] }, "ask", allow],
    [{ deny: [allow], allow: ["fs:read"] }, "allow", "fs:read"],
    [{ deny: [allow] }, "ask", "no rule"],
    [{ deny: ["fs:*"], allow: [allow] }, "deny", "fs:*"],
    [{ allow: ['fs:read({"a":1})'] }, "ask", 'fs:read({"a":1})'],
  ];
  for (const [lists, kind, rule] of table) {
    const said = makeJudge(set(lists), { known })(ID);
    assert.deepEqual([said.kind, said.rule], [kind, rule], JSON.stringify(lists));
    const depends = Object.values(lists).flat().filter((text) => text.includes("("));
    if (kind !== "deny") assert.deepEqual(said.depends, depends);
  }
  const many = Array.from({ length: 9 }, (_, at) => `fs:read(mode=${at})`);
  assert.equal(makeJudge(set({ allow: many }))(ID).depends?.length, 5);
  assert.equal(makeJudge(set({ allow: many }))(ID, { mode: "x" }).depends, undefined);
});

import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import type { Verdict } from "../core/call.ts";
import { PmlError } from "../core/errors.ts";
import type { JsonObject } from "../core/json.ts";
import { matches, narrowness, parsePattern, type Pattern } from "../core/pattern.ts";
import { type ToolId, toolId } from "../core/tool_id.ts";
import {
  alwaysWins,
  inferCapabilityApprovalMode,
  makeJudge,
  type Rule,
  type RuleSet,
  rulesVersion,
} from "./rules.ts";

const ID = toolId("fs", "read");
const known = () => true;
const LISTS = ["deny", "ask", "allow"] as const;

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

/** Every way to have, or not to have, a rule of each width in one list. */
function widths(more: readonly string[] = []): string[][] {
  const all = ["fs:read", "fs:*", "*", ...more];
  const ways = Array.from({ length: 2 ** all.length }, (_, bits) => bits);
  return ways.map((bits) => all.filter((_, at) => bits & (1 << at)));
}

/** Whether a rule holds for arguments, none of which is a path: plainly, for short globs. */
function holds(pattern: Pattern, args: JsonObject, unclear: boolean): boolean {
  if (pattern.kind === "arguments") {
    const json = pattern.text.slice(pattern.text.indexOf("(") + 1, -1);
    return isDeepStrictEqual(JSON.parse(json), args);
  }
  if (pattern.kind !== "conditions") return true;
  return pattern.conditions.every(({ name, glob }) => {
    const value = Object.hasOwn(args, name) ? args[name] : undefined;
    const text = typeof value === "string" ? value : JSON.stringify(value);
    const odd = /["\\]|[\0-\x1f]/.test(text ?? "\0") || typeof value === "object";
    if (odd || name === "command" && /[;|]/.test(text ?? "")) return unclear;
    const parts = glob.text.replace(/[.$]/g, "\\$&").split("**");
    return new RegExp(`^${parts.join("[^]<").replaceAll("*", "[^/]<").replaceAll("<", "*")}$`)
      .test(text ?? "");
  });
}

/** The rule of the design, as slowly and plainly as it can be said. */
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

Deno.test("makeJudge() follows the order of precedence in every combination of lists and widths", () => {
  for (const deny of widths()) {
    for (const ask of widths()) {
      for (const allow of widths()) {
        const rules = set({ deny, ask, allow });
        const said = makeJudge(rules, { known })(ID);
        assert.equal(said.kind, reference(rules, ID), JSON.stringify({ deny, ask, allow }));
      }
    }
  }
});

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

Deno.test("makeJudge() lets an allow rest on what is clear only, and a deny and an ask on the rest too", () => {
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
  // Only conditions are wary of a shell: exact arguments were shown as they are.
  const shell = { command: "git log | head" };
  assert.equal(judged({ allow: [`fs:read(${JSON.stringify(shell)})`] }, shell), "allow");
  assert.equal(judged({ allow: ["fs:read(mode=**)"] }, { mode: "a | b" }), "allow");
});

Deno.test("exact arguments are compared as values, not as text", () => {
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

Deno.test("arguments that cannot be compared meet every exact deny and ask, and no allow", () => {
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

Deno.test("without arguments a judge says what holds whatever they are, and names what decides", () => {
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

Deno.test("makeJudge() says a table of precedence that a person can read", () => {
  const table: [Partial<Record<keyof RuleSet, string[]>>, Verdict["kind"], string][] = [
    [{ deny: ["*"], allow: ["fs:read"] }, "deny", "*"],
    [{ deny: ["fs:*"], allow: ["fs:read"] }, "deny", "fs:*"],
    [{ deny: ["fs:read"], allow: ["fs:read"] }, "deny", "fs:read"],
    [{ ask: ["fs:read"], allow: ["fs:read"] }, "ask", "fs:read"],
    [{ ask: ["fs:*"], allow: ["fs:*"] }, "ask", "fs:*"],
    [{ ask: ["*"], allow: ["*"] }, "ask", "*"],
    [{ ask: ["fs:*"], allow: ["fs:read"] }, "allow", "fs:read"],
    [{ ask: ["*"], allow: ["fs:*"] }, "allow", "fs:*"],
    [{ ask: ["fs:read"], allow: ["fs:*", "*"] }, "ask", "fs:read"],
    [{ ask: ["fs:*"], allow: ["*"] }, "ask", "fs:*"],
    [{ allow: ["*"] }, "allow", "*"],
    [{}, "ask", "no rule"],
  ];
  for (const [lists, kind, rule] of table) {
    const said = makeJudge(set(lists), { known })(ID);
    assert.deepEqual([said.kind, said.rule], [kind, rule], JSON.stringify(lists));
  }
});

Deno.test("makeJudge() agrees with the reference on any rules", () => {
  const server = fc.constantFrom("fs", "fs-evil", "f", "shell", "git");
  const tool = fc.constantFrom("read", "Read", "read/b", "@resources", "r");
  const pattern = fc.oneof(
    fc.constant("*"),
    server.map((name) => `${name}:*`),
    fc.tuple(server, tool).map((pair) => pair.join(":")),
  );
  const patterns = fc.array(pattern, { maxLength: 6 });
  const id = fc.tuple(server, tool).map(([name, of]) => toolId(name, of));
  fc.assert(
    fc.property(fc.record({ deny: patterns, ask: patterns, allow: patterns }), id, (lists, id) => {
      const rules = set(lists);
      assert.equal(makeJudge(rules, { known })(id).kind, reference(rules, id));
    }),
    { numRuns: 2_000 },
  );
});

Deno.test("makeJudge() names the rule that decided and its source", () => {
  const rules: RuleSet = {
    deny: [...list(["git:*"], "/a/.pml.json"), ...list(["git:*"], "config.yaml")],
    ask: [],
    allow: list(["fs:read"], "defaults"),
  };
  const judge = makeJudge(rules);
  assert.deepEqual(judge(ID), { kind: "allow", rule: "fs:read", source: "defaults" });
  const said = judge(toolId("git", "log"));
  assert.deepEqual(said, { kind: "deny", rule: "git:*", source: "/a/.pml.json" });
});

Deno.test("makeJudge() matches exact bytes only", () => {
  const judge = makeJudge(set({ allow: ["fs:*", "git:log"] }), { known });
  const others = [
    "fs-evil:read",
    "FS:read",
    "f:read",
    "ｆs:read",
    "git:Log",
    "git:log ",
    "git:lоg",
  ];
  for (const other of others) assert.equal(judge(other as ToolId).kind, "ask", other);
});

Deno.test("a bare * in allow does not cover a first use, a rule that names the server does", () => {
  const judge = makeJudge(set({ allow: ["*"] }), { known: (server) => server === "fs" });
  assert.equal(judge(ID).kind, "allow");
  assert.deepEqual(judge(toolId("new", "run")), {
    kind: "ask",
    rule: "first use",
    source: "defaults",
  });
  assert.equal(makeJudge(set({ allow: ["*"] }))(ID).kind, "ask");
  for (const allow of ["fs:*", "fs:read"]) {
    assert.equal(makeJudge(set({ allow: [allow] }))(ID).kind, "allow");
  }
});

Deno.test("shell asks unless shell:* or an exact rule allows it", () => {
  const exec = toolId("shell", "exec");
  const table = {
    "*": "ask",
    "shell:*": "allow",
    "shell:exec": "allow",
    "shell:other": "ask",
    "shell:exec(command=git *)": "allow",
    'shell:exec({"command":"git log"})': "allow",
    'shell:exec({"command":"git"})': "ask",
  };
  for (const [allow, kind] of Object.entries(table)) {
    const judge = makeJudge(set({ allow: [allow] }), { known });
    assert.equal(judge(exec, { command: "git log" }).kind, kind, allow);
  }
  assert.equal(makeJudge(set({}), { known })(exec, { command: "git log" }).kind, "ask");
});

Deno.test("makeJudge() looks at few rules, whatever their number and the length of names", () => {
  let looks = 0;
  const counted = (text: string): Rule => {
    const pattern = parsePattern(text);
    return {
      source: "file",
      get pattern() {
        looks += 1;
        return pattern;
      },
    };
  };
  const texts = Array.from({ length: 100_000 }, (_, at) => `s${at % 5_000}:t${at}`);
  const others = texts.slice(1, 50_000).flatMap((text) => [`${text}(a=x*)`, `${text}({"a":1})`]);
  const rules = [...texts, ...others].map(counted);
  const judge = makeJudge({ deny: list(["x:y"]), ask: rules, allow: rules });
  for (const tool of ["t1", "t99999", "t".repeat(1_000_000)]) {
    looks = 0;
    judge(toolId("s1", tool), { a: "b" });
    // A tool that has rules with conditions looks at those, in both lists, and at one more.
    assert.ok(looks <= 3, `${looks} rules looked at`);
  }
});

Deno.test("makeJudge() finds one of 100,000 rules with exact arguments at once (PM14)", () => {
  const texts = Array.from({ length: 100_000 }, (_, at) => `fs:read({"a":${at}})`);
  const judge = makeJudge({ ...set({}), allow: list(texts) });
  const since = performance.now();
  for (let at = 0; at < 1_000; at++) assert.equal(judge(ID, { a: at }).kind, "allow");
  assert.equal(judge(ID, { a: -1 }).kind, "ask");
  // A walk through them would take minutes.
  assert.ok(performance.now() - since < 2_000);
});

Deno.test("alwaysWins() is true only where the rule would decide", () => {
  const source = "/w/.pml.json";
  const args = { a: 1 };
  const of = (lists: Partial<RuleSet>, rule: string = ID) =>
    alwaysWins({ ...set({}), ...lists }, { rule, id: ID, args, source });
  const exact = 'fs:read({"a":1})';
  assert.equal(of({ ask: list(["fs:read"]) }, exact), true);
  assert.equal(of({ ask: list(['fs:read({ "a": 1 })'], source) }, exact), true);
  assert.equal(of({ ask: list([exact], "/.pml.json") }, exact), false);
  for (const ask of ["fs:read(a=1)", exact]) assert.equal(of({ ask: list([ask], source) }), false);
  assert.equal(of({ ask: list(["fs:read(a=2)"], source) }), true);
  assert.equal(of({ deny: list(["fs:read(a=1)"], source) }), false);
  assert.equal(of({ ask: list(["*", "fs:*"]) }), true);
  assert.equal(of({ ask: list(["fs:read"], source) }), true);
  assert.equal(of({ ask: list(["fs:read"], "/.pml.json") }), false);
  for (const deny of ["*", "fs:*", "fs:read"]) {
    assert.equal(of({ deny: list([deny], source) }), false);
  }
  assert.equal(of({ deny: list(["git:*"]) }), true);
});

Deno.test("inferCapabilityApprovalMode() is the strictest of what the rules say", () => {
  const judge = makeJudge(set({ deny: ["no:*"], ask: ["fs:write"], allow: ["fs:*"] }));
  const infer = (...tools: string[]) =>
    inferCapabilityApprovalMode(judge, tools.map((text) => text as ToolId));
  assert.equal(infer("fs:read", "fs:list"), "auto");
  assert.equal(infer(), "auto");
  assert.equal(infer("fs:read", "fs:write"), "hil");
  const conditioned = makeJudge(set({ allow: ["fs:read(path=src/**)"] }));
  assert.equal(inferCapabilityApprovalMode(conditioned, [ID]), "hil");
  assert.equal(infer("fs:read", "unknown:tool"), "hil");
  assert.throws(() => infer("fs:write", "no:way"), (error) => {
    assert.ok(error instanceof PmlError);
    assert.equal(error.code, "PERMISSION_DENIED");
    assert.match(error.message, /"no:way"/);
    assert.match(error.hint ?? "", /"no:\*" in "file"/);
    return true;
  });
});

Deno.test("rulesVersion() changes with any rule or source, and not with the order", () => {
  const one = set({ deny: ["a:b", "c:d"], ask: ["*"], allow: ["e:f"] });
  assert.equal(rulesVersion(one), rulesVersion({ ...one, deny: one.deny.toReversed() }));
  const others: RuleSet[] = LISTS.map((name) => ({ ...one, [name]: [] }));
  others.push({ ...one, ask: one.deny, deny: one.ask }, { ...one, ask: list(["*"], "other") });
  const versions = new Set([one, ...others].map(rulesVersion));
  assert.equal(versions.size, 6);
});

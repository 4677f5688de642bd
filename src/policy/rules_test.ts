import assert from "node:assert/strict";
import fc from "fast-check";
import type { Verdict } from "../protocol/verdict.ts";
import type { JsonObject } from "../core/json.ts";
import { matches, narrowness, parsePattern } from "../core/pattern.ts";
import { type ToolId, toolId } from "../core/tool_id.ts";
import { alwaysWins } from "./always_wins.ts";
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
function widths(): string[][] {
  const all = ["fs:read", "fs:*", "*"];
  return [0, 1, 2, 3, 4, 5, 6, 7].map((bits) => all.filter((_, at) => bits & (1 << at)));
}

/** A simple reference implementation of the precedence of rules. */
function reference(rules: RuleSet, id: ToolId): Verdict["kind"] {
  const found = (name: keyof RuleSet) => rules[name].filter((rule) => matches(rule.pattern, id));
  const width = (name: keyof RuleSet) =>
    Math.max(-1, ...found(name).map((rule) => narrowness(rule.pattern)));
  if (found("deny").length > 0) return "deny";
  if (id.includes(":@")) {
    // A bare `*` in allow covers no other feature of MCP. Those are approved with their server.
    const named = Math.max(width("allow"), width("ask"));
    const isAsked = id.endsWith(":@sampling") || width("ask") === 0;
    if (named < 1) return isAsked ? "ask" : "allow";
  } else if (width("allow") === 0 && id.startsWith("shell:")) return "ask";
  return width("allow") > width("ask") ? "allow" : "ask";
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

Deno.test("a rule for the tools that read is between a tool and its server, and covers only readers", () => {
  const isReader = (id: ToolId) => id === ID;
  const judged = (lists: Parameters<typeof set>[0], id = ID) => {
    const { kind, rule } = makeJudge(set(lists), { known, readers: { isReader } })(id);
    return [kind, rule];
  };
  const reads = "fs:@reads";
  assert.deepEqual(judged({ allow: [reads], ask: ["fs:*", "*"] }), ["allow", reads]);
  assert.deepEqual(judged({ allow: ["fs:*", "*"], ask: [reads] }), ["ask", reads]);
  assert.deepEqual(judged({ allow: [reads], ask: [reads] }), ["ask", reads]);
  assert.deepEqual(judged({ allow: ["fs:read"], ask: [reads] }), ["allow", "fs:read"]);
  assert.deepEqual(judged({ allow: ["fs:read"], deny: [reads] }), ["deny", reads]);
  for (const other of [toolId("fs", "write"), toolId("fs", "@resources"), toolId("fs2", "read")]) {
    assert.equal(judged({ allow: [reads], ask: ["*"] }, other)[0], "ask", other);
  }
  assert.equal(makeJudge(set({ allow: [reads] }), { known })(ID).kind, "ask");
});

Deno.test("a judge asks again whether a tool reads, because its module can be loaded later", () => {
  let isLoaded = false;
  const judge = makeJudge(set({ allow: ["fs:@reads"], deny: ["db:@reads"] }), {
    known,
    readers: { isReader: () => isLoaded },
  });
  const table = toolId("db", "table");
  assert.deepEqual([judge(ID).kind, judge(table).kind], ["ask", "ask"]);
  isLoaded = true;
  assert.deepEqual([judge(ID).kind, judge(table).kind], ["allow", "deny"]);
});

Deno.test("makeJudge() follows a readable table of precedence", () => {
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
  const tool = fc.constantFrom("read", "Read", "read/b", "@resources", "@sampling", "r");
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

Deno.test("makeJudge() returns the same verdict independent of earlier calls", () => {
  const pattern = fc.constantFrom(
    ...["*", "fs:*", "fs:read", "fs:read(path=a/**)", "fs:read(path=b)", 'fs:read({"path":"a"})'],
    ...["shell:*", "shell:exec", "shell:exec(command=ls)", "git:*", "fs:other(path=a)"],
  );
  const patterns = fc.array(pattern, { maxLength: 5 });
  const id = fc.constantFrom(...["fs:read", "fs:other", "shell:exec", "git:log", "fs:@sampling"]);
  const args = fc.constantFrom<JsonObject | undefined>(
    ...[undefined, {}, { path: "a" }, { path: "a/b" }, { path: "b" }, { path: "../x" }],
    ...[{ command: "ls" }, { command: "ls", env: { LD_PRELOAD: "x" } }],
  );
  const calls = fc.array(fc.tuple(id as fc.Arbitrary<ToolId>, args), { maxLength: 12 });
  const rules = fc.record({ deny: patterns, ask: patterns, allow: patterns });
  fc.assert(
    fc.property(rules, calls, (lists, calls) => {
      const options = { known, workspace: "/w" };
      const judge = makeJudge(set(lists), options);
      for (const [id, args] of calls) {
        assert.deepEqual(judge(id, args), makeJudge(set(lists), options)(id, args));
      }
    }),
    { numRuns: 3_000 },
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

Deno.test("a bare * in allow does not cover a first use, but a rule that names the server does", () => {
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

Deno.test("makeJudge() looks at few rules for any number of rules and length of names", () => {
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
    // A tool with conditional rules looks at those, in both lists, and at one more.
    assert.ok(looks <= 3, `${looks} rules looked at`);
  }
});

Deno.test("makeJudge() finds one of 100,000 rules with exact arguments by lookup (PM14)", () => {
  const texts = Array.from({ length: 100_000 }, (_, at) => `fs:read({"a":${at}})`);
  const judge = makeJudge({ ...set({}), allow: list(texts) });
  const since = performance.now();
  for (let at = 0; at < 1_000; at++) assert.equal(judge(ID, { a: at }).kind, "allow");
  assert.equal(judge(ID, { a: -1 }).kind, "ask");
  // Looking at every rule for each call would take minutes.
  assert.ok(performance.now() - since < 6_000);
});

Deno.test("alwaysWins() returns true only if the rule would decide", () => {
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

Deno.test("rules for resources apply to skills, unless a narrower one names them", () => {
  const skills = toolId("fs", "@skills");
  const kindOf = (lists: Partial<Record<keyof RuleSet, readonly string[]>>) =>
    makeJudge(set(lists), { known })(skills).kind;
  assert.equal(kindOf({}), "allow");
  assert.equal(kindOf({ ask: ["fs:@resources"] }), "ask");
  assert.equal(kindOf({ ask: ["fs:@resources"], allow: ["fs:@skills"] }), "allow");
  assert.equal(kindOf({ ask: ["fs:@skills"], allow: ["fs:@resources"] }), "ask");
  assert.equal(kindOf({ ask: ["fs:*"], allow: ["fs:@resources"] }), "allow");
  assert.equal(kindOf({ ask: ["*"] }), "ask");
  assert.equal(kindOf({ deny: ["fs:@resources"], allow: ["fs:@skills"] }), "deny");
  assert.equal(kindOf({ deny: ["fs:@prompts"] }), "allow");
  const resources = makeJudge(set({ deny: ["fs:@skills"] }), { known })(toolId("fs", "@resources"));
  assert.equal(resources.kind, "allow");
  assert.equal(matches(parsePattern("fs:@resources"), skills), true);
  assert.equal(matches(parsePattern("fs:@skills"), toolId("fs", "@resources")), false);
  // The answer "Always" adds a rule that wins over one for resources.
  const asks = set({ ask: ["fs:@resources"] });
  assert.equal(
    alwaysWins(asks, { rule: "fs:@skills", id: skills, args: {}, source: "file" }),
    true,
  );
});

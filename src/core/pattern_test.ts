import assert from "node:assert/strict";
import fc from "fast-check";
import { PmlError } from "./errors.ts";
import {
  argumentsRule,
  isPathName,
  isSameRule,
  matches,
  methodRuleName,
  narrowness,
  parsePattern,
  RULE_MAX,
} from "./pattern.ts";
import { POSIX, WINDOWS } from "./paths.ts";
import { toolId } from "./tool_id.ts";

/** Rules with arguments. */
const WITH_ARGUMENTS = [
  "fs:read(path=src/**)",
  "fs:read(path=src/**, mode=r*)",
  "fs:read(path=src/**,mode=r*)",
  "fs:read(path=**/*.ts, path=src/**)",
  "fs:read(mode=)",
  "fs:read(path=.)",
  "fs:read(path=../shared/**)",
  "fs:read(path=/etc/**)",
  "fs:read(a.b-c_d$=x y  z)",
  String.raw`fs:read(path=a\,b\(c\)\*\\\ )`,
  "fs:read(path=[a]{b}?!|^$+.@:;\"'=#%&~<>\u00fc)",
  "fs:read({})",
  'fs:read({"path":"a","n":[1,{"b":null}]})',
  'fs:read({ "path" : "a)" })',
  `fs:read({"x":"${"y".repeat(RULE_MAX - 17)}"})`,
];

/** Texts that only look like such a rule. */
const BAD_ARGUMENTS = [
  "fs:read(",
  "fs:read)",
  "fs:read()",
  "fs:read( )",
  "fs:read(path)",
  "fs:read(=a)",
  "fs:read(path=a,)",
  "fs:read(path=a,,mode=b)",
  "fs:read(path=a,  mode=b)",
  "fs:read( path=a)",
  "fs:read(path=a )",
  "fs:read(path= a)",
  "fs:read(path =a)",
  "fs:read(path=a",
  "fs:read(path=a))",
  "fs:read(path=a)(mode=b)",
  "fs:read(path=a) ",
  "fs:read (path=a)",
  "fs:read(path=a(b)",
  "fs:read(path=a\\)",
  "fs:read(path=\\a)",
  "fs:read(path=a\nb)",
  "fs:read(path=a\u0000)",
  "fs:read(p\u00e4th=a)",
  "fs:read(path=a,mode)",
  "fs:read(path=./a)",
  "fs:read(path=a//b)",
  "fs:read(path=a/../b)",
  "fs:read(path=a/./b)",
  "fs:read(path=)",
  "*(path=a)",
  "fs:*(path=a)",
  "*:read(path=a)",
  "fs:*({})",
  "*({})",
  "fs:@resources(uri=a)",
  "fs(path=a)",
  "fs:(path=a)",
  ":read(path=a)",
  "call:read(path=a)",
  "fs:read({)",
  "fs:read(})",
  "fs:read({}",
  "fs:read({} )",
  "fs:read( {})",
  "fs:read({}{})",
  "fs:read({},path=a)",
  "fs:read({'a':1})",
  'fs:read({"a":1,})',
  String.raw`fs:read({"a":"\ud800"})`,
  String.raw`fs:read({"\ud800":1})`,
  'fs:read(["a"])',
  'fs:read("a")',
  `fs:read({"x":"${"y".repeat(RULE_MAX - 16)}"})`,
  `fs:read(${Array.from({ length: 17 }, () => "a=b").join(",")})`,
  `fs:read(${"a".repeat(65)}=b)`,
];

Deno.test("parsePattern() reads the documented grammar and nothing else", () => {
  const good = [
    "pml:*",
    "pml:search_tools",
    "*",
    "fs:*",
    "fs:read",
    "fs:@resources",
    "fs:@sampling",
    "fs:@method(skills/list)",
    "fs:@method(a.b$c_d-e)",
    "a.b:c-d",
    ...WITH_ARGUMENTS,
  ];
  for (const text of good) assert.equal(parsePattern(text).text, text);
  const bad = [
    "pml:",
    "search:*",
    "",
    ":",
    "**",
    "file*",
    "*:read",
    "*:*",
    "fs:",
    ":read",
    "a:b:c",
    "{a,b}:c",
    "!fs:x",
    "fs:[a-z]",
    "fs:rea*",
    "fs:@anything",
    "fs:@method",
    "fs:@method()",
    "fs:@method(a b)",
    "fs:@method(*)",
    "fs:@method(a)(b=c)",
    "fs:@method(a)({})",
    `fs:@method(${"a".repeat(129)})`,
    "Fs:@method(a)",
    "fs:read\n",
    "Fs:read",
    " fs:read",
    ...BAD_ARGUMENTS,
  ];
  for (const text of bad) {
    assert.throws(
      () => parsePattern(text),
      (error) => error instanceof PmlError && error.code === "CONFIG_INVALID",
      JSON.stringify(text),
    );
  }
});

Deno.test("methodRuleName() returns a name only for methods that a rule can name", () => {
  assert.equal(methodRuleName("skills/list"), "@method(skills/list)");
  for (const odd of ["", "a b", "a)", "a:b", "\n", "a".repeat(129)]) {
    assert.equal(methodRuleName(odd), undefined);
  }
});

Deno.test("matches() covers by whole names, never by prefix", () => {
  assert.ok(matches(parsePattern("fs:*"), toolId("fs", "read")));
  assert.ok(!matches(parsePattern("fs:*"), toolId("fs-evil", "read")));
  assert.ok(!matches(parsePattern("fs:read"), toolId("fs", "read_file")));
  assert.ok(matches(parsePattern("*"), toolId("any", "a/b")));
  assert.ok(narrowness(parsePattern("fs:read")) > narrowness(parsePattern("fs:*")));
  assert.ok(narrowness(parsePattern("fs:*")) > narrowness(parsePattern("*")));
});

Deno.test("a pattern for the tools that read covers readers of its server, and no arguments", () => {
  const reads = parsePattern("fs:@reads");
  assert.ok(matches(reads, toolId("fs", "read"), true));
  assert.ok(!matches(reads, toolId("fs", "read")));
  assert.ok(!matches(reads, toolId("other", "read"), true));
  assert.ok(narrowness(reads) > narrowness(parsePattern("fs:*")));
  assert.ok(narrowness(reads) < narrowness(parsePattern("fs:read")));
  for (const text of ["fs:@reads(path=a)", "fs:@reads({})", "@reads", "*:@reads", "fs:@read"]) {
    assert.throws(() => parsePattern(text), { code: "CONFIG_INVALID" });
  }
});

Deno.test("matches() agrees with comparing the two halves", () => {
  const name = fc.constantFrom("a", "b", "a-b");
  fc.assert(fc.property(name, name, name, name, (ps, pt, s, t) => {
    assert.equal(matches(parsePattern(`${ps}:${pt}`), toolId(s, t)), ps === s && pt === t);
  }));
});

Deno.test("parsePattern() says how a rule is written", () => {
  assert.throws(() => parsePattern("fs:read(path)"), (error) => {
    assert.ok(error instanceof PmlError);
    assert.match(
      error.hint ?? "",
      /"server:tool\(name=glob, \.\.\.\)" or "server:tool\(\{JSON\}\)"/,
    );
    return true;
  });
});

Deno.test("parsePattern() takes the whole text or nothing, in a time that its length bounds", () => {
  const hostile = `fs:read(${"a=b c ,".repeat(500)}`;
  assert.throws(() => parsePattern(hostile));
  assert.throws(() => parsePattern(`fs:read(a=${" ".repeat(4_000)}`));
  assert.throws(() => parsePattern(`fs:read({${'"a":{'.repeat(900)})`));
});

Deno.test("a rule with arguments covers its tool, and is the narrowest", () => {
  for (const text of ["fs:read(path=a)", 'fs:read({"path":"a"})']) {
    assert.ok(matches(parsePattern(text), toolId("fs", "read")));
    assert.ok(!matches(parsePattern(text), toolId("fs", "write")));
    assert.ok(narrowness(parsePattern(text)) > narrowness(parsePattern("fs:read")));
  }
});

Deno.test("argumentsRule() writes a rule that reads as the same arguments, or none", () => {
  const id = toolId("shell", "exec");
  fc.assert(fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (args) => {
    const rule = argumentsRule(id, args as never); // generated as JSON
    const fits = rule !== undefined;
    if (!fits) return;
    assert.ok(rule.length <= RULE_MAX);
    const pattern = parsePattern(rule);
    assert.equal(pattern.kind, "arguments");
    assert.ok(isSameRule(rule, rule));
    assert.ok(isSameRule(`${id}(${JSON.stringify(args, null, 1)})`, rule));
  }));
  assert.equal(
    argumentsRule(id, { a: [1], B: { d: 1, c: "x" } }),
    'shell:exec({"B":{"c":"x","d":1},"a":[1]})',
  );
  assert.equal(argumentsRule(id, { a: "x".repeat(RULE_MAX) }), undefined);
  assert.equal(argumentsRule(id, { a: "\ud800" }), undefined);
});

Deno.test("isSameRule() does not care how JSON is laid out, and knows no other likeness", () => {
  const rule = 'shell:exec({"a":1,"b":2})';
  assert.ok(isSameRule('shell:exec({ "b": 2.0, "a": 1 })', rule));
  for (
    const other of ["shell:exec", 'shell:exec({"a":1})', 'shell:exec({"a":1,"b":"2"})', 3, null]
  ) {
    assert.ok(!isSameRule(other, rule));
  }
  assert.ok(isSameRule("shell:exec", "shell:exec"));
});

Deno.test("isPathName() knows the names of paths", () => {
  const paths = "path file_path filePath oldFile FILENAME file_name cwd dir outputDir folder " +
    "directory source destination target from to copy_from moveTo PATH src dest repo";
  for (const name of paths.split(" ")) assert.ok(isPathName(name), name);
  for (const name of ["command", "content", "photo", "auto", "mode", "resource", "upfrom"]) {
    assert.ok(!isPathName(name), name);
  }
});

Deno.test("parsePattern() takes a backslash in a path of Windows for a separator", () => {
  const globs = (text: string, rules = WINDOWS) => {
    const pattern = parsePattern(text, rules);
    return pattern.kind === "conditions" ? pattern.conditions.map(({ glob }) => glob) : pattern;
  };
  const cases = [
    [String.raw`fs:read(path=src\**)`, ["src/**"]],
    [String.raw`fs:read(path=src\\**, mode=r*)`, ["src/**", "r*"]],
    [String.raw`fs:read(file_path=c:\Work\ws\*.ts)`, ["c:/Work/ws/*.ts"]],
    [String.raw`fs:read(path=a\,b\(c\)\ \d)`, [String.raw`a\,b\(c\)\ /d`]],
    ["fs:read(path=src/**)", ["src/**"]],
    [String.raw`fs:read(mode=r\*)`, [String.raw`r\*`]],
  ] as const;
  for (const [text, wanted] of cases) assert.deepEqual(globs(text), wanted, text);
  const none = [
    String.raw`fs:read(mode=a\b)`,
    String.raw`fs:read(path=\\\\server\x)`,
    String.raw`fs:read(path=src\..\x)`,
  ];
  for (const text of none) assert.throws(() => globs(text), { code: "CONFIG_INVALID" }, text);
  assert.throws(() => globs(String.raw`fs:read(path=src\a)`, POSIX), { code: "CONFIG_INVALID" });
  assert.deepEqual(globs(String.raw`fs:read(path=src\**)`, POSIX), [String.raw`src\**`]);
});

Deno.test("parsePattern() names the tool whose own name no rule can have", () => {
  assert.throws(() => parsePattern("raw:\u65e5\u672c"), {
    hint: /^Write "raw:tool_cf2abf0c5be3" for this tool, or "\*"/,
  });
});

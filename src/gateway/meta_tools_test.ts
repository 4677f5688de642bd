import assert from "node:assert/strict";
import { encode } from "gpt-tokenizer/encoding/o200k_base";
import { instructions, serverLine } from "./instructions.ts";
import { META_TOOLS } from "../config/exposure.ts";
import { metaTools } from "./meta_tools.ts";
import type { ServerState } from "../servers/lists/servers.ts";
import type { ModelTool } from "../servers/lists/tool_names.ts";

const MOST_TOKENS = 700;
const INSTRUCTIONS_MAX = 2_000;

function states(count: number, name: (n: number) => string): readonly ServerState[] {
  return Array.from({ length: count }, (_, n) => ({
    name: name(n),
    kind: "stdio",
    origin: "private",
    state: "ready",
    why: undefined,
    tools: 1,
  }));
}

function named(...names: readonly string[]): readonly ModelTool[] {
  return names.map((name) => ({ name }));
}

Deno.test("the list of meta-tools costs at most 700 tokens, and is the same for any servers", () => {
  const all = metaTools(1_000);
  // Clients do not pass `_meta` to models.
  const tools = META_TOOLS.map((one) => ({ ...all[one], _meta: undefined }));
  const tokens = encode(JSON.stringify({ tools })).length;
  assert.ok(tokens <= MOST_TOKENS, `${tokens} tokens`);
});

Deno.test("the instructions name the listed meta-tools and the servers, and stay short", () => {
  const few = states(3, (n) => ["filesystem", "github", "slack"][n] ?? "");
  assert.match(instructions(few), /^Servers: filesystem, github, slack$/m);
  const names = (text: string) => META_TOOLS.filter((name) => text.includes("`" + name + "`"));
  assert.deepEqual(names(instructions(few)), META_TOOLS);
  const metaTools = ["search", "call"] as const;
  assert.deepEqual(names(instructions(few, { metaTools })), metaTools);
  assert.deepEqual(names(instructions(few, { metaTools: [] })), []);
  const random = (n: number) => `${n}x9k.zq-${(n * 7919) % 1000}_vj`.padEnd(64, "q7-z.");
  for (const name of [(n: number) => `server-${n}`, random]) {
    const many = states(5_000, name);
    const tools = new Map(many.map((one) => [one.name, named("a", "b")]));
    assert.match(serverLine(many), /^.+ and \d+ more$/);
    assert.match(instructions(many, { tools }), / \(2\), .* and \d+ more$/);
    for (const count of [0, 1, 30, 100, 5_000]) {
      assert.ok(instructions(many.slice(0, count), { tools }).length <= INSTRUCTIONS_MAX);
    }
  }
  const broken = few.map((one) => ({
    ...one,
    why: "x\u202e".repeat(400),
    state: "failed" as const,
  }));
  assert.ok(instructions(broken).length <= INSTRUCTIONS_MAX);
  assert.match(instructions(broken), /^Servers: .*slack\n- filesystem \(x/m);
  assert.doesNotMatch(instructions(broken), /\u202e/);
});

Deno.test("the instructions name all tools while the names are short, or else their number", () => {
  const servers = states(2, (n) => ["files", "git"][n] ?? "");
  const files = named("read", "write");
  const tools = new Map([["files", files], ["git", named("log")]]);
  const lines = (text: string) => text.split("\n").slice(-2);
  assert.deepEqual(lines(instructions(servers, { tools })), ["- files: read, write", "- git: log"]);
  const many = named(...Array.from({ length: 100 }, (_, n) => `a_long_name_${n}`));
  const long = new Map([["files", files], ["git", many]]);
  const [counted] = lines(instructions(servers, { tools: long })).slice(-1);
  assert.match(counted ?? "", /: files \(2\), git \(100\)$/);
  const most = "x".repeat(1_200 - "read".length - "write".length - "log".length - 8);
  const full = (extra: string) => new Map([...tools, ["git", named("log", most + extra)]]);
  assert.match(instructions(servers, { tools: full("") }), /- git: log, x/);
  assert.match(instructions(servers, { tools: full("x") }), /, git \(2\)$/);
  // Names of a hostile server stay on its line.
  const odd = new Map([["files", named("a\n- git: b\u202e")]]);
  assert.equal(instructions(servers, { tools: odd }).split("\n").length, 4);
});

Deno.test("the instructions contain parameters while the calls of all tools are short", () => {
  const servers = states(1, () => "files");
  const call = "read(path, head?: number)";
  const text = (...others: readonly ModelTool[]) =>
    instructions(servers, { tools: new Map([["files", [{ name: "read", call }, ...others]]]) });
  assert.match(text(), /^- files: read\(path, head\?: number\)$/m);
  assert.match(text({ name: "x", call: `x(${"y".repeat(1_200)})` }), /^- files: read, x$/m);
  assert.match(text({ name: "x" }), /number\), x$/m);
});

Deno.test("the instructions contain required parameters of the servers for which these fit", () => {
  const servers = states(2, (n) => ["files", "git"][n] ?? "");
  const tool = (name: string, length: number): ModelTool => ({
    name,
    call: `${name}(${"y".repeat(1_200)})`,
    shortCall: `${name}(${"x".repeat(length)}, …)`,
  });
  const text = (files: number, git: number) =>
    instructions(servers, {
      tools: new Map([["files", [tool("read", files)]], ["git", [tool("log", git)]]]),
    }).split("\n").slice(-2).map((line) => line.replace(/x+/, "x"));
  assert.deepEqual(text(10, 20), ["- files: read(x, …)", "- git: log(x, …)"]);
  assert.deepEqual(text(1_300, 20), ["- files: read(x, …)", "- git: log(x, …)"]);
  assert.deepEqual(text(1_370, 20), ["- files: read", "- git: log(x, …)"]);
  assert.deepEqual(text(10, 1_400), ["- files: read(x, …)", "- git: log"]);
});

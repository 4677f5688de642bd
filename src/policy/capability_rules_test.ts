import assert from "node:assert/strict";
import { PmlError } from "../core/errors.ts";
import { parsePattern } from "../core/pattern.ts";
import type { ToolId } from "../core/tool_id.ts";
import { capabilityJudge, inferCapabilityApprovalMode } from "./capability_rules.ts";
import { makeJudge } from "./rules.ts";

const TOOLS: Record<string, readonly string[]> = {
  "my:reads": ["fs:read"],
  "my:writes": ["fs:read", "fs:write"],
  "my:none": [],
  "my:denied": ["fs:read", "no:way"],
  "my:outer": ["my:reads", "my:none"],
  "my:around": ["my:back"],
  "my:back": ["my:around"],
  "my:deep": ["my:denied"],
};

function judgeOf(lists: { deny?: string[]; ask?: string[]; allow?: string[] }) {
  const rules = (list: readonly string[] = []) =>
    list.map((text) => ({ pattern: parsePattern(text), source: "file" }));
  const plain = makeJudge({
    deny: rules(lists.deny),
    ask: rules(lists.ask),
    allow: rules(lists.allow),
  }, { known: () => true });
  const tools = { toolsOf: (id: ToolId) => TOOLS[id] as readonly ToolId[] | undefined };
  const judge = capabilityJudge(tools, plain, plain);
  return (id: string) => judge(id as ToolId, {}).kind;
}

Deno.test("capabilityJudge() judges a capability by its tools if no rule names it", () => {
  const of = judgeOf({ allow: ["fs:read"], deny: ["no:*"] });
  const kinds = Object.fromEntries(Object.keys(TOOLS).map((id) => [id, of(id)]));
  assert.deepEqual(kinds, {
    "my:reads": "allow",
    "my:writes": "ask",
    "my:none": "allow",
    "my:denied": "deny",
    "my:outer": "allow",
    "my:around": "ask",
    "my:back": "ask",
    "my:deep": "deny",
  });
  assert.equal(of("fs:read"), "allow");
  assert.equal(of("fs:other"), "ask");
});

Deno.test("capabilityJudge() applies a rule that names the capability unless one of its tools is denied", () => {
  assert.equal(judgeOf({ ask: ["my:reads"], allow: ["fs:*"] })("my:reads"), "ask");
  assert.equal(judgeOf({ ask: ["*"], allow: ["fs:*"] })("my:reads"), "ask");
  assert.equal(judgeOf({ allow: ["my:*"] })("my:writes"), "allow");
  assert.equal(judgeOf({ allow: ["*"] })("my:writes"), "allow");
  assert.equal(judgeOf({ allow: ["my:*"], deny: ["no:way"] })("my:denied"), "deny");
  assert.equal(judgeOf({ allow: ["fs:*"], deny: ["my:reads"] })("my:outer"), "deny");
});

Deno.test("inferCapabilityApprovalMode() returns the strictest mode of the tools", () => {
  const permissions = { deny: ["no:*"], ask: ["fs:write"], allow: ["fs:*"] };
  const infer = (...tools: string[]) => inferCapabilityApprovalMode(tools, permissions);
  assert.equal(infer("fs:read", "fs:list"), "auto");
  assert.equal(infer(), "auto");
  assert.equal(infer("fs:read", "fs:write"), "hil");
  assert.equal(infer("fs:read", "unknown:tool"), "hil");
  assert.throws(() => infer("fs:write", "no:way"), (error) => {
    assert.ok(error instanceof PmlError);
    assert.equal(error.code, "PERMISSION_DENIED");
    assert.match(error.message, /"no:way"/);
    assert.match(error.hint ?? "", /"no:\*" in "permissions"/);
    return true;
  });
});

Deno.test("inferCapabilityApprovalMode() asks where a rule about tools that read may deny or ask", () => {
  for (const list of ["deny", "ask"]) {
    const lists = { allow: ["notes:*", "fs:*"], [list]: ["notes:@reads"] };
    assert.equal(inferCapabilityApprovalMode(["notes:list"], lists), "hil");
    assert.equal(inferCapabilityApprovalMode(["fs:read"], lists), "auto");
  }
  assert.equal(inferCapabilityApprovalMode(["notes:list"], { allow: ["notes:@reads"] }), "hil");
});

Deno.test("inferCapabilityApprovalMode() accepts the lists of a .pml.json", () => {
  const used = ["filesystem:read", "tavily:search"];
  const lists = { allow: ["tavily:*"], ask: ["filesystem:*"] };
  assert.equal(inferCapabilityApprovalMode(used, lists), "hil");
  assert.equal(
    inferCapabilityApprovalMode(used, { allow: ["tavily:*", "filesystem:read"] }),
    "auto",
  );
  assert.equal(inferCapabilityApprovalMode(used, {}), "hil");
  assert.equal(inferCapabilityApprovalMode(used, { allow: ["*"] }), "auto");
  // Conditions depend on arguments that are not known yet; shell needs a rule that names it.
  assert.equal(
    inferCapabilityApprovalMode(["fs:read"], { allow: ["fs:read(path=src/**)"] }),
    "hil",
  );
  assert.equal(inferCapabilityApprovalMode(["shell:exec"], { allow: ["*"] }), "hil");
  for (const odd of ["", "fs", "a:b:c d!", "*", "__proto__"]) {
    assert.equal(inferCapabilityApprovalMode([odd], { allow: ["*"] }), "hil", odd);
    assert.throws(
      () => inferCapabilityApprovalMode([odd], { deny: ["*"] }),
      /PERMISSION_DENIED|deny rule/,
    );
  }
  assert.throws(() => inferCapabilityApprovalMode([], { allow: ["a b"] }), /Cannot read the rule/);
});

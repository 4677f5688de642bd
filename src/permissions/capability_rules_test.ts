import assert from "node:assert/strict";
import { parsePattern } from "../core/pattern.ts";
import type { ToolId } from "../core/tool_id.ts";
import { capabilityJudge } from "./capability_rules.ts";
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
  const judge = capabilityJudge({
    plain,
    judge: plain,
    toolsOf: (id) => TOOLS[id] as readonly ToolId[] | undefined,
  });
  return (id: string) => judge(id as ToolId, {}).kind;
}

Deno.test("capabilityJudge() goes by what a capability calls where no rule names it", () => {
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

Deno.test("capabilityJudge() lets a rule that names a capability decide, but for what is denied", () => {
  assert.equal(judgeOf({ ask: ["my:reads"], allow: ["fs:*"] })("my:reads"), "ask");
  assert.equal(judgeOf({ ask: ["*"], allow: ["fs:*"] })("my:reads"), "ask");
  assert.equal(judgeOf({ allow: ["my:*"] })("my:writes"), "allow");
  assert.equal(judgeOf({ allow: ["*"] })("my:writes"), "allow");
  assert.equal(judgeOf({ allow: ["my:*"], deny: ["no:way"] })("my:denied"), "deny");
  assert.equal(judgeOf({ allow: ["fs:*"], deny: ["my:reads"] })("my:outer"), "deny");
});

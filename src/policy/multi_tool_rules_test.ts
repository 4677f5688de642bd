import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { toolId } from "../core/tool_id.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { effectOf, MultiToolRules } from "./multi_tool_rules.ts";

const ID = toolId("crm", "find");
const RULE = { rule: ID, source: "/w/.pml.json" };

function tool(annotations: ToolDefinition["annotations"]): ToolDefinition {
  return { name: "find", inputSchema: { type: "object" }, ...annotations && { annotations } };
}

const READS = tool({ readOnlyHint: true });
const WRITES = tool({ readOnlyHint: false, destructiveHint: false });
const DESTROYS = tool({ destructiveHint: true });

async function recorded(definition: ToolDefinition) {
  const home = await Deno.makeTempDir();
  const rules = new MultiToolRules(home);
  await rules.add(RULE.source, [{ id: ID, effect: effectOf(definition) }]);
  return { home, rules };
}

Deno.test("a rule of an answer for several tools ends if the hints of its tool become more harmful", async () => {
  const table = [
    [READS, { reads: false, writes: true, destroys: true }],
    [WRITES, { reads: false, writes: false, destroys: true }],
    [DESTROYS, { reads: false, writes: false, destroys: false }],
  ] as const;
  for (const [before, { reads, writes, destroys }] of table) {
    const { rules } = await recorded(before);
    const over = [READS, WRITES, DESTROYS].map((now) => rules.hasEnded(RULE, now));
    assert.deepEqual(over, [reads, writes, destroys]);
    // An argument can have an effect, too.
    const takesUrl = { ...READS, inputSchema: { type: "object", properties: { url: {} } } };
    assert.equal(rules.hasEnded(RULE, takesUrl), before === READS);
  }
});

Deno.test("only rules of that file and tool end, and an answer about the tool alone begins a new one", async () => {
  const { rules } = await recorded(READS);
  assert.equal(rules.hasEnded({ ...RULE, source: "/other/.pml.json" }, DESTROYS), false);
  assert.equal(rules.hasEnded({ ...RULE, rule: toolId("crm", "find2") }, DESTROYS), false);
  assert.equal(rules.hasEnded({ ...RULE, rule: "crm:*" }, DESTROYS), false);
  assert.equal(rules.hasEnded(RULE, DESTROYS), true);
  await rules.remove(RULE);
  await rules.remove(RULE);
  assert.equal(rules.hasEnded(RULE, DESTROYS), false);
});

Deno.test("a record that cannot be read ends the rule of a tool that does not only read", async () => {
  const { home, rules } = await recorded(WRITES);
  const [{ name = "" } = {}] = [...Deno.readDirSync(join(home, "shown"))];
  for (const text of ["", "{", "{}", '{"reads": "no", "destroys": false}']) {
    await writeFile(join(home, "shown", name), text);
    assert.equal(rules.hasEnded(RULE, tool({ title: text })), true, text);
    assert.equal(rules.hasEnded(RULE, READS), false);
  }
});

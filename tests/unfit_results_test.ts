/**
 * Results of servers that do not match the schema of their own tool.
 *
 * @module
 */

import assert from "node:assert/strict";
import { journalOf, ofKind } from "./attacks/oracles.ts";
import { makeAttackWorkspace } from "./attacks/stage.ts";
import { RawStdio } from "./kit/raw_stdio.ts";
import { NEWEST } from "./kit/said_server.ts";
import { definitions, filesOf } from "./said_scene.ts";

const SUM = { type: "object", properties: { sum: { type: "number" } }, required: ["sum"] };

Deno.test("a result that does not match the schema of its tool is delivered as it came", async () => {
  const results = {
    wrong: { content: [{ type: "text", text: "it is\n7" }], structuredContent: { sum: "7" } },
    none: { content: [{ type: "text", text: "plain" }], "x/kept": 1, _meta: { mine: 2 } },
    bare: { content: [], structuredContent: { sum: null } },
    fine: { content: [{ type: "text", text: "7" }], structuredContent: { sum: 7 } },
  };
  const tables = Object.fromEntries(
    Object.entries(results).flatMap(([name, result]) => {
      const tools = [{ name: "go", inputSchema: { type: "object" }, outputSchema: SUM }];
      const table = { "tools/list": { result: { tools } }, "tools/call": { result } };
      return [[name, table], [`${name}-newest`, { ...NEWEST, ...table }]];
    }),
  );
  const allow = Object.keys(tables).map((name) => `${name}:*`);
  await using ws = await makeAttackWorkspace({
    files: filesOf(tables),
    pml: {
      version: 1,
      permissions: { allow },
      gateway: { tools_exposure: "full_proxy" },
      mcpServers: definitions(tables),
    },
  });
  await using pml = new RawStdio(ws, { era: "2026-07-28" });
  await pml.open();
  const calls = ["", "-newest"].flatMap((suffix) =>
    Object.entries(results).flatMap(([name, result]) => {
      const call = [`${name}${suffix}__go`, result] as const;
      return [call, call];
    })
  );
  for (const [name, { content, ...wanted }] of calls) {
    const { result } = await pml.callTool(name, {});
    assert.deepEqual(result?.content, content, name);
    const { structuredContent } = wanted as { structuredContent?: unknown };
    assert.deepEqual(result?.structuredContent, structuredContent, name);
    assert.equal(result?.isError, undefined, name);
    assert.equal(result?.["x/kept"], "x/kept" in wanted ? 1 : undefined, name);
    assert.equal(Object(result?._meta).mine, "_meta" in wanted ? 2 : undefined, name);
  }
  await pml.close();
  const ends = ofKind(await journalOf(ws), "end");
  assert.deepEqual([...new Set(ends.map(({ outcome }) => outcome))], ["result"]);
  assert.equal(ends.length, 16);
});

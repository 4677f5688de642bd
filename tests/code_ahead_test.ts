import assert from "node:assert/strict";
import { ledgerOf, ledgerScene, runCode, textsOf, valueOf } from "./attacks/code_tools.ts";
import { endWell } from "./attacks/oracles.ts";
import type { RawStdio } from "./kit/raw_stdio.ts";
import { until } from "./kit/wait.ts";

/** Returns the process ids of the sandbox children. */
async function childrenOf(pml: RawStdio): Promise<readonly number[]> {
  const all = await pml.watch.living();
  return all.filter(({ command }) => command.includes("--unstable-worker-options"))
    .map(({ pid }) => pid);
}

Deno.test("a child for code starts after the hint that code pays, and ends when it is idle", async () => {
  await using scene = await ledgerScene({ limits: { idle_ms: 2_000 } });
  const { ws, pml } = scene;
  const hints: readonly (readonly [string, Readonly<Record<string, unknown>>])[] = [
    ["search", { queries: ["read a file", "write a file"] }],
    ["schema", { tools: ["filesystem:read_file"], as: "typescript" }],
  ];
  for (const [tool, args] of hints) {
    await pml.callTool(tool, args);
    await until(async () => (await childrenOf(pml)).length === 1);
    await until(async () => (await childrenOf(pml)).length === 0);
  }
  await endWell(ws, pml);
});

Deno.test("code runs in the child that started during the check of its types, and only after the check", async () => {
  await using scene = await ledgerScene();
  const { ws, pml } = scene;
  const wrong = textsOf(await runCode(pml, "await mcp.led.note({ text: 'a' }); mcp.led.nope()"));
  assert.match(wrong[0] ?? "", /^The code did not run: .*type errors/);
  assert.deepEqual(await ledgerOf(ws), []);
  // The child waits for the corrected code.
  await until(async () => (await childrenOf(pml)).length === 1);
  const [ready] = await childrenOf(pml);
  assert.equal(await valueOf(pml, "return 1 + 1"), "2");
  await until(async () => !(await childrenOf(pml)).includes(ready ?? 0));
  assert.equal(await valueOf(pml, "await mcp.led.note({ text: 'b' }); return 3"), "3");
  assert.deepEqual(await ledgerOf(ws), ["note b"]);
  await endWell(ws, pml);
});

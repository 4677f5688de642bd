import assert from "node:assert/strict";
import type { ProgramDefinition } from "./kind.ts";
import { CallPathStage } from "../app/_call_path_stage_test.ts";

const OWN = { version: "1.0.0", integrity: `sha256-${"1".repeat(64)}` };
const OTHER = { version: "1.0.1", integrity: `sha256-${"2".repeat(64)}` };
const TINY = { mcpServers: { tiny: { command: "npx", args: ["-y", "tiny"] } } };

Deno.test("Packages.check() compares the definition that is started, also after a change of the files", async () => {
  const meanwhile: readonly object[] = [
    TINY,
    { private_mcps: { tiny: { type: "http", url: "https://tiny.example/mcp" } } },
    { mcpServers: { other: TINY.mcpServers.tiny } },
    { mcpServers: { tiny: { ...TINY.mcpServers.tiny, disabled: true } } },
    {},
  ];
  for (const pml of meanwhile) {
    await using at = await CallPathStage.open({ pml: TINY });
    const { packages } = at.path.machine;
    const own = at.policy.definitionOf("tiny") as ProgramDefinition;
    await packages.check(own, OWN);
    // A server is pinned with the first definitions of its tools.
    await at.pins.findUnapprovedTool(packages.identityOf(own), { name: "go", inputSchema: {} });
    await at.pins.flush();
    assert.equal(await packages.versionOf(own), OWN.version);
    await at.change(pml);
    await assert.rejects(packages.check(own, OTHER), { code: "APPROVAL_STALE" });
    await packages.check(own, OWN);
  }
});

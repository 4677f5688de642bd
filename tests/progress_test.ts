/**
 * Commands that take longer than a second show on a terminal which servers they wait for.
 *
 * @module
 */

import assert from "node:assert/strict";
import { FakeRegistry } from "./kit/fake_registry.ts";
import { runPml, runPmlOnTerminal } from "./kit/run.ts";
import { tinyServer } from "./kit/tiny_server.ts";
import { makeWorkspace } from "./kit/workspace.ts";

/** A server that answers nothing for 3 seconds. */
const SLOW = tinyServer('"fine"').replace(
  "rest += chunk;",
  "globalThis.waits ??= new Promise((done) => setTimeout(done, 3_000)); await globalThis.waits;\n" +
    "  rest += chunk;",
);
const PML = {
  version: 1,
  mcpServers: {
    slow: { command: "node", args: ["slow.mjs"] },
    quick: { command: "node", args: ["quick.mjs"] },
  },
};
const COMMANDS: readonly (readonly string[])[] = [
  ["doctor"],
  ["config"],
  ["search", "tell me"],
  ["tools"],
  ["tools", "slow"],
  ["why", "slow:tell"],
];

for (const args of COMMANDS) {
  Deno.test(`pml ${args.join(" ")} shows each second the server that it waits for`, async () => {
    const files = { "slow.mjs": SLOW, "quick.mjs": tinyServer('"fine"') };
    await using ws = await makeWorkspace({ files, pml: PML });
    const { stdout } = await runPmlOnTerminal(ws, args);
    assert.match(stdout, /starting slow … [12] s/);
    if (args[0] !== "search") return;
    // Without a terminal, the output has no progress.
    const plain = await runPml(ws, args);
    assert.doesNotMatch(plain.stdout + plain.stderr, /starting slow …/);
  });
}

const WITH_REGISTRY: readonly (readonly [command: string, activity: string, ...more: string[]])[] =
  [
    ["doctor", "asking the registries"],
    ["config", "counting tokens"],
    ["search", "searching", "tell me"],
  ];

for (const [command, activity, ...more] of WITH_REGISTRY) {
  Deno.test(`pml ${command} shows each second that it waits for a registry`, async () => {
    await using registry = await FakeRegistry.open([]);
    registry.fault("*", { delayMs: 3_000 });
    await using ws = await makeWorkspace({ env: { PML_REGISTRIES: registry.url } });
    const { stdout } = await runPmlOnTerminal(ws, [command, ...more]);
    assert.match(stdout, new RegExp(`${activity} … [12] s`));
  });
}

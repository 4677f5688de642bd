/**
 * Servers that repeat their key in messages other than results.
 *
 * @module
 */

import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import process from "node:process";
import { type Era, ERAS } from "../kit/json_rpc.ts";
import { repoFile } from "../kit/pml_command.ts";
import { until } from "../kit/wait.ts";
import { endWell, textOf } from "./oracles.ts";
import { makeScene, type Scene, type SceneOptions } from "./stage.ts";

const KEY = "gw16/canary+0123456789~abcdefghij";
const HALVES = [KEY.slice(0, KEY.length / 2), KEY.slice(KEY.length / 2)];
/** The key in a longer text, which must not be recognizable by its ends. */
const FORMS = [
  KEY,
  // This part has the same form after any escaping.
  "canary",
  Buffer.from(`user:${KEY}`).toString("base64").slice(8, -4),
  Buffer.from(KEY).toString("hex"),
];

async function sceneOf(era: Era, options: SceneOptions = {}): Promise<Scene> {
  const script = repoFile("tests/kit/leaky_server.ts");
  const args = ["run", "-A", "--no-config", "--quiet", script];
  const leaky = { command: process.execPath, args, env: { TOKEN: "${LEAKY_TOKEN}" } };
  const rules = ["filesystem:*", "leaky:*", "mine:*"];
  const mine = { type: "deno", path: "mine.js" };
  return await makeScene({
    era,
    pml: {
      version: 1,
      permissions: { allow: rules },
      mcpServers: { leaky },
      private_mcps: { mine },
      grants: { mine: { env: ["LEAKY_TOKEN"] } },
    },
    files: {
      "mine.js": `
        export const __meta__ = {
          name: "mine", version: "1.0.0", permissions: { env: ["LEAKY_TOKEN"] },
          tools: { tell: { inputSchema: { type: "object" } } },
        };
        export function tell(_, host) {
          host.progress({ progress: 1, message: "at " + host.env("LEAKY_TOKEN") });
        }`,
    },
    env: { LEAKY_TOKEN: KEY, PML_LOG_LEVEL: "debug" },
    ...options,
  });
}

function assertClean(text: string, what: string): void {
  for (const form of FORMS) assert.ok(!text.includes(form), `${what}: ${text.slice(0, 2_000)}`);
}

for (const era of ERAS) {
  Deno.test(`a key that a server repeats appears only in its results, on ${era} (GW16)`, async () => {
    const requests: string[] = [];
    const answer = (_: string, params: unknown) => {
      requests.push(JSON.stringify(params));
      return { action: "decline" };
    };
    await using scene = await sceneOf(era, { answer });
    const { ws, pml } = scene;
    if (era !== "2026-07-28") await pml.request("logging/setLevel", { level: "debug" });
    const _meta = { progressToken: "p", "io.modelcontextprotocol/logLevel": "debug" };
    const tell = async (server: string) => {
      const call = { name: "call", arguments: { tool: `${server}:tell`, arguments: {} } };
      return JSON.stringify(await pml.request("tools/call", { ...call, _meta }));
    };
    assert.match(
      await tell("leaky"),
      /answered with the error 7.*"x-\[redacted\]":\["\[redacted\]"\]/,
    );
    await tell("mine");
    const told = (method: string) => pml.messages.filter((message) => message.method === method);
    await until(() => told("notifications/message").length > 0);
    assert.equal(told("notifications/progress").length, 2);
    assert.match(JSON.stringify(told("notifications/message")), /leaky\/log/);
    await pml.callTool("call", { tool: "leaky:ask", arguments: {} });
    assert.match(requests.join(), /Is it .*redacted/);
    assertClean(pml.stdout, "what the client got");
    // Also not the key that was cut at its end.
    assert.ok(!pml.stdout.includes(KEY.slice(0, 12)), "the beginning of a key");
    await endWell(ws, pml);
    assertClean(pml.stderr, "the log");
  });
}

Deno.test("a key in two writes of a server's stderr is removed from the log and from its end (GW16)", async () => {
  await using scene = await sceneOf("2025-11-25");
  const { ws, pml } = scene;
  const call = (tool: string) => pml.callTool("call", { tool: `leaky:${tool}`, arguments: {} });
  assert.equal(textOf(await call("half")), "half");
  // Now PML has read the first half: the answer came after it, and earlier lines are logged.
  await until(() => pml.stderr.includes("begins"));
  assert.equal(textOf(await call("rest")), "rest");
  await until(() => pml.stderr.includes("ends"));
  assert.match(pml.stderr, /it is \[redacted\] it was/);
  await call("half");
  const died = JSON.stringify(await call("die"));
  assert.match(died, /"stderr":".*begins/);
  await endWell(ws, pml);
  for (const text of [pml.stderr, pml.stdout]) assert.ok(!text.includes(HALVES[1] ?? ""), text);
  assert.ok(!pml.stderr.slice(0, pml.stderr.indexOf("ends")).includes(HALVES[0] ?? ""), pml.stderr);
});

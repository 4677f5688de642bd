/**
 * A made-up check of calls. It needed these files: `tests/kit/made_up_check.ts`, and one line in
 * the table, `src/calls/checks.ts`. The line below replaces that line. A real check is a file of
 * `src/calls/checks/`, with a row in `docs/design.md`.
 *
 * @module
 */

import assert from "node:assert/strict";
import type { Check } from "../src/calls/checks/check.ts";
import { CHECKS } from "../src/calls/checks.ts";
import { knownDouble } from "../src/servers/_server_double_test.ts";
import { notInCapitals } from "./kit/made_up_check.ts";

(CHECKS as (() => Check)[]).push(() => notInCapitals);

const { CallPathStage, OracleServer } = await import("../src/app/_call_path_stage_test.ts");

Deno.test("a made-up check refuses a call, and lets another one pass", async () => {
  const tools = ["ask", "ASK"].map((name) => ({ name, inputSchema: {} }));
  const server = new OracleServer({ ...knownDouble("far"), tools: () => tools });
  await using stage = await CallPathStage.open({
    pml: {
      mcpServers: { far: { type: "http", url: "https://far.example/mcp" } },
      permissions: { allow: ["far:*"] },
    },
    open: () => server,
  });
  assert.equal((await stage.call("far", "ask")).kind, "result");
  await assert.rejects(stage.call("far", "ASK"), {
    code: "PERMISSION_DENIED",
    message: /"far:ASK"/,
  });
  assert.deepEqual(server.ran, ["far:ask"]);
});

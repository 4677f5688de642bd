import assert from "node:assert/strict";
import { RawStdio } from "../kit/raw_stdio.ts";
import { makeWorkspace } from "../kit/workspace.ts";

const PARAMS = {
  protocolVersion: "2025-06-18",
  capabilities: {},
  clientInfo: { name: "t", version: "1" },
};

/** Returns the response to `initialize` as the first request of a new PML. */
async function helloTo(params: Record<string, unknown>): Promise<unknown> {
  await using ws = await makeWorkspace({ files: { "good.txt": "good" } });
  await using pml = new RawStdio(ws);
  const { result } = await pml.request("initialize", params);
  await pml.notify("notifications/initialized");
  const list = await pml.request("tools/list", {});
  assert.ok(list.result !== undefined);
  pml.assertClean();
  await pml.close();
  return result;
}

Deno.test("initialize is answered at once as the SDK answers, and only once", async () => {
  // With `_meta` the SDK answers the request.
  const [early, late] = await Promise.all([helloTo(PARAMS), helloTo({ ...PARAMS, _meta: {} })]);
  assert.deepEqual(early, late);
});

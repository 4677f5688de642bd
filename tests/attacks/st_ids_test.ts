import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { ERAS, paramsFor } from "../kit/json_rpc.ts";
import type { RawStdio } from "../kit/raw_stdio.ts";
import { waitUntil } from "../kit/wait.ts";
import type { Workspace } from "../kit/workspace.ts";
import { assertAftermath, assertServes, journalOf, ofKind, textOf } from "./oracles.ts";
import { makeScene, SLOW } from "./stage.ts";

type Id = number | string;

for (const era of ERAS) {
  Deno.test(`an id in use is refused, and its first request answered, on ${era} (ST8)`, async () => {
    await using scene = await makeScene({ era, ...SLOW });
    const { ws, pml } = scene;
    const first = pml.expect(7);
    await sendWait(pml, 7, "go");
    const before = pml.messages.length;
    await sendWait(pml, 7, "good.txt");
    await sendWait(pml, 7, "good.txt");
    await pml.request("tools/list");
    const refused = pml.messages.slice(before, -1).map(({ id, error }) => [id, error?.code]);
    assert.deepEqual(refused, [[null, -32600], [null, -32600]]);
    // The same digit as a text is another id.
    assert.equal(textOf(await waitFor(pml, "7", "good.txt")), "good\n");
    await writeFile(ws.file("go"), "gone");
    assert.equal(textOf(await first), "gone");
    assert.equal(textOf(await waitFor(pml, "again", "good.txt")), "good\n");
    await end(ws, pml);
  });

  Deno.test(`a cancelled call is never answered, on ${era} (ST8)`, async () => {
    await using scene = await makeScene({ era, ...SLOW });
    const { ws, pml } = scene;
    for (const [at, tool] of ["wait", "spin"].entries()) {
      await pml.sendJson(frame(pml, { id: `cancelled ${at}`, path: "go", tool }));
      await assertServes(pml);
      await cancel(pml, `cancelled ${at}`);
      await cancel(pml, `cancelled ${at}`);
      assert.ok(await waitUntil(async () => await cancelledCalls(ws) === at + 1));
    }
    await writeFile(ws.file("go"), "late");
    await assertServes(pml);
    // Its file exists now: no result is sent, and its child still works.
    assert.equal(textOf(await waitFor(pml, "after", "go")), "late");
    const ids = pml.messages.map(({ id }) => String(id));
    assert.deepEqual(ids.filter((id) => id.startsWith("cancelled")), []);
    await end(ws, pml);
  });
}

Deno.test("cancelling a call that does not run does nothing (ST8)", async () => {
  await using scene = await makeScene({ era: "2025-11-25", ...SLOW });
  const { ws, pml } = scene;
  await cancel(pml, "later");
  assert.equal(textOf(await waitFor(pml, "later", "good.txt")), "good\n");
  await cancel(pml, "later");
  for (const requestId of ["unknown", 99, null, 1.5, {}, [], "__proto__", undefined]) {
    await pml.notify("notifications/cancelled", { requestId });
  }
  await pml.sendJson({ jsonrpc: "2.0", method: "notifications/cancelled" });
  await assertServes(pml);
  assert.equal(await cancelledCalls(ws), 0);
  await end(ws, pml);
});

Deno.test("a cancel that overtakes its call stops no other (ST8)", async () => {
  await using scene = await makeScene({ era: "2026-07-28", ...SLOW });
  const { ws, pml } = scene;
  const kept = pml.expect("kept");
  await sendWait(pml, "kept", "go");
  // In one chunk: the cancel arrives before the call can have started.
  await pml.sendText(
    [
      JSON.stringify(frame(pml, { id: "gone", path: "go" })),
      JSON.stringify({
        jsonrpc: "2.0",
        method: "notifications/cancelled",
        params: paramsFor(pml.era, { requestId: "gone" }, {}),
      }),
      JSON.stringify(frame(pml, { id: "next", path: "good.txt" })),
    ].map((line) => `${line}\n`).join(""),
  );
  assert.equal(textOf(await pml.expect("next")), "good\n");
  await writeFile(ws.file("go"), "gone");
  assert.equal(textOf(await kept), "gone");
  assert.ok(!pml.messages.some(({ id }) => id === "gone"));
  await end(ws, pml);
});

Deno.test("an id may be used again once its call was cancelled (ST8)", async () => {
  await using scene = await makeScene(SLOW);
  const { ws, pml } = scene;
  for (let round = 0; round < 3; round++) {
    await sendWait(pml, "again", "go");
    await cancel(pml, "again");
  }
  assert.equal(textOf(await waitFor(pml, "again", "good.txt")), "good\n");
  await writeFile(ws.file("go"), "late");
  assert.equal(textOf(await waitFor(pml, "after", "go")), "late");
  await end(ws, pml);
});

Deno.test("a cancelled initialize does no harm (ST8)", async () => {
  await using scene = await makeScene({ first: '{"jsonrpc":"2.0","method":"x"}\n', ...SLOW });
  const { ws, pml } = scene;
  await cancel(pml, 1);
  await assertServes(pml);
  await end(ws, pml);
});

/** Sends a call of the slow module, without waiting for its answer. */
async function sendWait(pml: RawStdio, id: Id, path: string): Promise<void> {
  await pml.sendJson(frame(pml, { id, path }));
}

async function waitFor(pml: RawStdio, id: Id, path: string) {
  return await pml.request("tools/call", { name: "slow__wait", arguments: { path } }, { id });
}

function frame(
  pml: RawStdio,
  { id, path, tool = "wait" }: { readonly id: Id; readonly path: string; readonly tool?: string },
): Record<string, unknown> {
  const params = { name: `slow__${tool}`, arguments: { path } };
  return { jsonrpc: "2.0", id, method: "tools/call", params: paramsFor(pml.era, params, {}) };
}

async function cancel(pml: RawStdio, requestId: Id): Promise<void> {
  await pml.notify("notifications/cancelled", { requestId, reason: "changed my mind" });
}

async function cancelledCalls(ws: Workspace): Promise<number> {
  const ends = ofKind(await journalOf(ws), "end");
  return ends.filter(({ code }) => code === "CANCELLED").length;
}

/** Ends like `endWell()`, where some calls were cancelled and so have no answer. */
async function end(ws: Workspace, pml: RawStdio): Promise<void> {
  await assertServes(pml);
  const { code } = await pml.close();
  assert.equal(code, 0, pml.stderr);
  await assertAftermath(ws, pml);
}

/**
 * Notifications whose methods PML does not know, in both directions.
 *
 * @module
 */

import assert from "node:assert/strict";
import { DRAWINGS, extensionScene, NOTES } from "./extension_scene.ts";
import type { Json } from "./kit/json_rpc.ts";
import { journalOf } from "./attacks/oracles.ts";
import { WAYS } from "./kit/raw_stdio.ts";
import { until } from "./kit/wait.ts";

const CHANGED = "notifications/notes/changed";
const PARAMS = { own: { a: [1, null] }, _meta: { "x/y": { b: 1 } } };
const DECLARED = { extensions: { [NOTES]: {} } };
const KINDS = [["an older server", []], ["a server of the newest revision", ["--modern"]]] as const;

for (const { era, door, on } of WAYS) {
  for (const [behind, kind] of KINDS) {
    Deno.test(`a notification of a client reaches ${behind} if a rule allows it, ${on}`, async () => {
      await using scene = await extensionScene(era, {
        servers: { notes: [...kind, NOTES], drawings: [DRAWINGS] },
        rules: { allow: [`notes:@method(${CHANGED})`, "notes:@method(notes/told)"] },
        door,
      });
      const { pml } = scene;
      const heard = async () => await scene.valueOf("notes__heard") as Json[];
      for (const method of [CHANGED, "notes/told"]) await pml.notify(method, PARAMS);
      await until(async () => (await heard()).length === 2);
      for (const [at, one] of (await heard()).entries()) {
        const { own, _meta } = one.params as Json;
        assert.deepEqual([one.method, own], [[CHANGED, "notes/told"][at], PARAMS.own]);
        assert.deepEqual(_meta?.["x/y"], PARAMS._meta["x/y"]);
      }
      const records = await journalOf(scene.ws);
      const starts = records.filter(({ kind, via }) => kind === "start" && via === CHANGED);
      assert.deepEqual(
        starts.map(({ tool, verdict }) => [tool, verdict]),
        [[`notes:@method(${CHANGED})`, "allow"]],
      );
    });

    Deno.test(`a notification of ${behind} reaches a client that declared its extension, ${on}`, async () => {
      await using scene = await extensionScene(era, {
        servers: { notes: [...kind, NOTES] },
        door,
        capabilities: DECLARED,
      });
      const told = () => scene.pml.messages.filter(({ method }) => method === CHANGED);
      await scene.call("notes__tell", { method: CHANGED, params: PARAMS });
      await until(() => told().length === 1);
      assert.deepEqual(told()[0]?.params, PARAMS);
      // Over HTTP, a client of the newest revision can be notified only within a request.
      const isBrief = door === "http" && era === "2026-07-28";
      await scene.call("notes__tell", { method: CHANGED, params: PARAMS, isLate: true });
      if (isBrief) await until(() => /no client here declared/.test(scene.pml.stderr));
      else await until(() => told().length === 2);
    });
  }

  Deno.test(`a notification without an owner, a rule or a receiver is logged by its name, ${on}`, async () => {
    await using scene = await extensionScene(era, {
      servers: { notes: [NOTES], drawings: [DRAWINGS] },
      rules: { deny: ["notes:@method(notes/denied)"] },
      door,
    });
    const { pml } = scene;
    const odd = "notes/x\n2026 info  forged\u202e";
    // Over HTTP the newest revision repeats the method in a header, which cannot contain this one.
    const isSent = era === "2025-11-25" || door === "stdio";
    if (isSent) await pml.notify(odd, PARAMS);
    for (const method of ["notes/asks", "notes/denied", "other/x"]) {
      for (let count = 0; count < 3; count++) await pml.notify(method, PARAMS);
    }
    await scene.call("notes__tell", { method: "notes/told", params: PARAMS });
    await until(() => /"notes\/told" of "notes"/.test(pml.stderr));
    await until(() => /"other\/x" of the client/.test(pml.stderr));
    const lines = (text: RegExp) => pml.stderr.split("\n").filter((line) => text.test(line));
    const asks = lines(/"notes\/asks" .*not passed on: .*no rule/);
    assert.equal(asks.length, 1, pml.stderr);
    assert.match(asks[0] ?? "", /allow "notes:@method\(notes\/asks\)" in permissions/);
    assert.equal(lines(/"notes\/denied" of the client .* deny rule/).length, 1, pml.stderr);
    assert.equal(lines(/"other\/x" of the client .* drawings, notes/).length, 1, pml.stderr);
    assert.equal(lines(/no client .*its extension/).length, 1, pml.stderr);
    assert.equal(
      lines(/"notes\/x.*of an extension/).length,
      isSent ? 1 : 0,
      pml.stderr,
    );
    assert.equal(lines(/^2026 info/).length, 0);
    assert.deepEqual(await scene.valueOf("notes__heard"), []);
    const records = await journalOf(scene.ws);
    const refused = records.filter(({ via, verdict }) => via === "notes/asks" && verdict === "ask");
    assert.equal(refused.length, 3);
    assert.equal(pml.messages.some(({ method }) => method === "notes/told"), false);
  });
}

Deno.test("a server cannot notify for MCP, for PML, or against a rule", async () => {
  const names = ["tools", "pml", "roots", "cancelled"].map((name) => `x.test/${name}`);
  await using scene = await extensionScene("2025-11-25", {
    servers: { notes: [NOTES] },
    rules: { deny: [`notes:@method(${CHANGED})`] },
    capabilities: { extensions: Object.fromEntries([...names, NOTES].map((id) => [id, {}])) },
  });
  const methods = [
    "notifications/pml/not_begun",
    "pml/x",
    "notifications/roots/list_changed",
    "tools/list",
    "notifications/initialized",
    CHANGED,
  ];
  for (const method of methods) {
    await scene.call("notes__tell", { method, params: { requestId: 1 } });
    await until(() => scene.pml.stderr.includes(`A notification "${method}" of "notes" was not`));
  }
  assert.equal(scene.pml.messages.some(({ method = "" }) => methods.includes(method)), false);
});

Deno.test("a flood of notifications is bounded, in both directions", async () => {
  await using scene = await extensionScene("2025-11-25", {
    servers: { notes: [NOTES] },
    rules: { allow: ["notes:@method(notes/told)"] },
    capabilities: DECLARED,
  });
  const { pml } = scene;
  const told = () => pml.messages.filter(({ method }) => method === CHANGED).length;
  await scene.call("notes__tell", { method: CHANGED, params: {}, count: 20_000 });
  await until(() =>
    /"notifications\/notes\/changed" of "notes" was not passed on/.test(pml.stderr)
  );
  await scene.call("notes__tell", { method: "unknown/x", params: {}, count: 20_000 });
  for (let count = 0; count < 2_000; count++) await pml.notify("notes/told", { count });
  await until(() => /"notes\/told" .*not passed on/.test(pml.stderr));
  assert.ok(told() > 0 && told() <= 600, `${told()}`);
  const heard = await scene.valueOf("notes__heard") as Json[];
  assert.ok(heard.length > 0 && heard.length <= 600, `${heard.length}`);
  const counts = heard.map(({ params }) => Number(params?.count));
  assert.deepEqual(counts, counts.toSorted((one, other) => one - other), "they keep their order");
  assert.ok(pml.stderr.length < 10_000, "the log is bounded, too");
});

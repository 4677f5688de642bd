/**
 * Capabilities as a client uses them: it saves code that worked, then finds, lists and calls it, in
 * both revisions.
 *
 * @module
 */

import assert from "node:assert/strict";
import { assertAftermath, codeOf, journalOf, textOf } from "./attacks/oracles.ts";
import { picked } from "./attacks/questions.ts";
import { approve, called, capabilityScene, PARIS, savedCode } from "./capability_scene.ts";
import { ERAS } from "./kit/json_rpc.ts";
import type { Workspace } from "./kit/workspace.ts";

Deno.test("code that worked is saved, found and called with other arguments", async () => {
  await using scene = await capabilityScene("2026-07-28", { typed: true });
  const { pml, ws, asked } = scene;
  const said = await savedCode(pml, PARIS, {
    name: "my:weather",
    description: "Weather in a sentence",
    parameters: { city: "Paris", days: 3 },
  });
  assert.equal(said.saved, "my:weather", JSON.stringify(said));
  assert.deepEqual(said.parameters, ["city", "days"]);
  const [question = ""] = asked;
  assert.equal(asked.length, 1);
  assert.match(question, /saved as a tool/);
  assert.match(question, /It calls weather:get, which runs now/);
  assert.match(
    question,
    /\| const said = await mcp\.weather\.get\(\{ city: args\.city, days: args\.days \}\)/,
  );
  const found = textOf(await pml.callTool("search", { query: "weather in a sentence" }));
  assert.match(found, /^my:weather\(city, days: number\)(?:: .*[^\]])?$/m);
  const shown = JSON.parse(textOf(await pml.callTool("schema", { tools: ["my:weather"] })));
  assert.deepEqual(shown[0].inputSchema.required, ["city", "days"]);
  const { result } = await pml.callTool("call", {
    tool: "my:weather",
    arguments: { city: "Rome", days: 5 },
  });
  assert.deepEqual(result?.structuredContent, { text: "Rome for 5", sun: true });
  const wrong = await called(pml, "my:weather", { city: 5 });
  assert.match(wrong, /BAD_ARGUMENTS|days|city/);
  const batch = textOf(
    await pml.callTool("batch", {
      calls: [{ tool: "my:weather", arguments: { city: "Oslo", days: 1 } }],
    }),
  );
  assert.match(batch, /Oslo for 1/);
  const inner = textOf(
    await pml.callTool("execute_code", {
      code: 'return (await mcp.my.weather({ city: "Bern", days: 2 })).text',
    }),
  );
  assert.match(inner, /Bern for 2/);
  assert.equal(asked.length, 1, "each call is allowed");
  assert.equal((await pml.close()).code, 0);
  await assertAftermath(ws, pml);
  const lines = await journalOf(ws);
  const vias = lines.filter(({ kind, tool }) => kind === "start" && tool === "weather:get")
    .map(({ via }) => via);
  assert.deepEqual(vias, ["code", "capability", "capability", "capability"]);
  assert.ok(lines.some(({ event }) => event === "capability saved"));
});

Deno.test("the journal does not record a capability as saved if saving it fails", async () => {
  let home: Workspace | undefined;
  await using scene = await capabilityScene("2025-11-25", {
    prepare: (ws) => Promise.resolve(void (home = ws)),
    answers: async () => {
      assert.ok(home !== undefined);
      await approve(home, { "my:weather": "return 1" }); // after the question began
      return picked("Yes");
    },
  });
  const report = await savedCode(scene.pml, PARIS, "my:weather");
  assert.match(JSON.stringify(report), /APPROVAL_STALE/);
  await scene.pml.close(); // the journal is complete then
  const events = (await journalOf(scene.ws)).flatMap(({ event }) => event ?? []);
  assert.ok(events.includes("capability asked"), events.join());
  assert.ok(!events.includes("capability saved"), events.join());
});

Deno.test("a no saves nothing, and the result of the run stays", async () => {
  await using scene = await capabilityScene("2025-11-25", { answers: () => picked("No") });
  const { pml } = scene;
  const { result } = await pml.callTool("execute_code", { code: PARIS, save_as: "my:weather" });
  assert.notEqual(result?.isError, true);
  const text = JSON.stringify(result);
  assert.match(text, /Paris for 3/);
  assert.match(text, /APPROVAL_DECLINED/);
  assert.match(await called(pml, "my:weather"), /UNKNOWN_TOOL|Cannot find/);
});

for (const era of ERAS) {
  Deno.test(`a question inside a capability is asked while the capability waits, on ${era}`, async () => {
    await using scene = await capabilityScene(era);
    const { pml, asked, ws } = scene;
    const code = `const one = await mcp.weather.get({ city: "Paris" });
      const two = await mcp.weather.warn({ city: one.city });
      return { city: one.city, two };`;
    const said = await savedCode(pml, code, { name: "my:warning", parameters: { city: "Paris" } });
    assert.equal(said.saved, "my:warning", JSON.stringify(said));
    asked.length = 0;
    const { result } = await pml.callTool("call", {
      tool: "my:warning",
      arguments: { city: "Rome" },
    });
    assert.deepEqual(result?.structuredContent, {
      city: "Rome",
      two: { warned: { city: "Rome" } },
    });
    // One question for the capability, whose calls ask, and one for the call itself.
    assert.equal(asked.length, 2, asked.join("\n---\n"));
    assert.match(asked[0] ?? "", /Tool: "warning"[\s\S]*It calls weather:warn/);
    assert.match(asked[1] ?? "", /Tool: "warn"[\s\S]*"city": "Rome"/);
    const starts = (await journalOf(ws)).filter(({ kind }) => kind === "start");
    assert.equal(starts.filter(({ tool }) => tool === "weather:get").length, 2);
  });
}

Deno.test("a plan that worked is saved and called with other arguments", async () => {
  await using scene = await capabilityScene("2026-07-28");
  const { pml, asked } = scene;
  const plan = {
    tasks: [
      { id: "a", tool: "weather:get", arguments: { city: "Paris", days: 2 } },
      { id: "b", tool: "weather:get", arguments: { city: { $ref: "a#/city" }, days: 9 } },
    ],
  };
  const message = await pml.callTool("execute_workflow", {
    plan,
    save_as: { name: "my:plan", parameters: { city: "Paris" } },
  });
  const text = JSON.stringify(message).replaceAll('\\"', '"');
  assert.match(text, /"saved":"my:plan"/, text);
  assert.match(asked[0] ?? "", /\|.*"\$ref": "\$params#\/city"/);
  const { result } = await pml.callTool("call", {
    tool: "my:plan",
    arguments: { city: "Rome" },
  });
  assert.deepEqual(result?.structuredContent, { city: "Rome", days: 9, sun: true });
  const inPlan = await pml.callTool("execute_workflow", {
    plan: { tasks: [{ id: "x", tool: "my:plan", arguments: { city: "Oslo" } }] },
  });
  assert.match(JSON.stringify(inPlan), /Oslo/);
  const earlier = await pml.callTool("execute_workflow", {
    plan: { tasks: [{ id: "x", tool: "weather:get", arguments: { city: { $ref: "r.a#/x" } } }] },
    save_as: "my:other",
  });
  assert.match(JSON.stringify(earlier), /an earlier run/);
  assert.equal(asked.length, 1);
});

Deno.test("a capability that cannot be saved does not run", async () => {
  await using scene = await capabilityScene("2025-11-25", { files: {} });
  const { pml, ws } = scene;
  const cases: [unknown, RegExp][] = [
    ["weather:other", /NAME_CONFLICT.*"weather" is a server/],
    ["filesystem:mine", /NAME_CONFLICT/],
    ["github:mine", /NAME_CONFLICT.*knows by this name/],
    ["nothing", /NAME_INVALID/],
    ["my:Upper", /NAME_INVALID/],
    ["pml:mine", /NAME_INVALID/],
    [7, /save_as/],
    [{ name: "my:x", parameters: { city: "Rome" } }, /"Rome" .*a literal/],
    [{ name: "my:x", other: 1 }, /unknown key "other"/],
  ];
  for (const [saveAs, wanted] of cases) {
    const message = await pml.callTool("execute_code", { code: PARIS, save_as: saveAs });
    const text = JSON.stringify(message).replaceAll('\\"', '"');
    assert.match(text, wanted, JSON.stringify(saveAs));
    assert.ok(codeOf(message) !== undefined, JSON.stringify(message));
  }
  assert.equal((await journalOf(ws)).filter(({ kind }) => kind === "start").length, 0);
  const failed = await pml.callTool("execute_code", {
    code: 'throw new Error("no")',
    save_as: "my:x",
  });
  assert.match(JSON.stringify(failed), /Nothing was saved/);
});

/**
 * All of MCP other than tools, between clients and stdio servers of both revisions, as bytes on the
 * wire.
 *
 * @module
 */

import assert from "node:assert/strict";
import { textOf } from "./attacks/oracles.ts";
import { call, full, KINDS, ledgerOf, listed, sceneOf } from "./full_scene.ts";
import { ERAS, type Json } from "./kit/json_rpc.ts";
import { RawStdio } from "./kit/raw_stdio.ts";
import { until } from "./kit/wait.ts";

for (const era of ERAS) {
  Deno.test(`resources, templates and prompts of all servers are listed completely, on ${era}`, async () => {
    await using scene = await sceneOf(era);
    const { ws, pml } = scene;
    const resources = await listed(pml, "resources/list", { key: "resources", least: 6 });
    assert.deepEqual(resources.map(({ uri }) => uri), [
      "pml://servers",
      "pml://metrics",
      ...KINDS.flatMap((kind) => ["a", "b"].map((one) => `pml://${kind}/test://${one}`)),
    ]);
    assert.deepEqual(resources[2], {
      uri: "pml://legacy/test://a",
      name: "a",
      title: "The first",
      size: 3,
      "x/kept": 1,
    });
    const templates = await listed(pml, "resources/templates/list", {
      key: "resourceTemplates",
      least: 3,
    });
    assert.deepEqual(
      templates.map(({ uriTemplate }) => uriTemplate),
      [
        "pml://results/{output}{?offset,limit,pointer,lines,grep}",
        ...KINDS.map((kind) => `pml://${kind}/test://item/{id}`),
      ],
    );
    const prompts = await listed(pml, "prompts/list", { key: "prompts", least: 2 });
    assert.deepEqual(prompts.map(({ name }) => name), KINDS.map((kind) => `${kind}__greet`));
    // A cursor that refers to its own page is requested once more, and no further.
    const requests = (await ledgerOf(ws, "legacy")).filter((line) =>
      line.startsWith("resources/list")
    );
    assert.equal(requests.length, 2);
  });

  Deno.test(`a resource is read by its prefixed URI, and by its own where one server has it, on ${era}`, async () => {
    await using scene = await sceneOf(era);
    const { ws, pml } = scene;
    for (const kind of KINDS) {
      const { result } = await pml.request("resources/read", { uri: `pml://${kind}/test://a` });
      assert.deepEqual((result?.contents as unknown as Json[])[0], {
        uri: "test://a",
        mimeType: "text/plain",
        text: "t",
        "x/kept": 1,
      });
      assert.equal(result?.["x/kept"], 2);
      const item = await pml.request("resources/read", { uri: `pml://${kind}/test://item/7` });
      assert.equal(item.error, undefined);
    }
    const twice = await pml.request("resources/read", { uri: "test://a" });
    assert.match(
      twice.error?.message ?? "",
      /several servers have it.*pml:\/\/legacy\/test:\/\/a/s,
    );
    const nobody = await pml.request("resources/read", { uri: "test://linked" });
    assert.match(nobody.error?.message ?? "", /Cannot find the resource/);
    await call(pml, "legacy:link");
    assert.equal((await pml.request("resources/read", { uri: "test://linked" })).error, undefined);
    const reads = (await ledgerOf(ws, "legacy")).filter((line) =>
      line.startsWith("resources/read")
    );
    assert.deepEqual(reads.map((line) => JSON.parse(line.slice(15)).uri), [
      "test://a",
      "test://item/7",
      "test://linked",
    ]);
    const missing = await pml.request("resources/read", {
      uri: "pml://legacy/test://item/missing",
    });
    // The SDK no longer has an error code for a missing resource.
    assert.deepEqual([missing.error?.code, missing.error?.data], [-32602, { a: 1 }]);
    const states = await pml.request("resources/read", { uri: "pml://servers" });
    const [{ text }] = states.result?.contents as unknown as [{ text: string }];
    const legacy = JSON.parse(text).find(({ name }: { name: string }) => name === "legacy");
    assert.deepEqual([legacy.state, legacy.tools], ["ready", 11]);
    const counted = await pml.request("resources/read", { uri: "pml://metrics" });
    const [metrics] = counted.result?.contents as unknown as [{ text: string }];
    const { calls, tokens } = JSON.parse(metrics.text);
    // Reading a resource is a call of the pipeline, too, and is not counted as an answer of a tool.
    assert.deepEqual([calls.errors, calls.failed, Object.keys(tokens)], [1, { BAD_REQUEST: 1 }, [
      "call",
    ]]);
  });

  Deno.test(`prompts and completion reach their server under its own names, on ${era}`, async () => {
    await using scene = await sceneOf(era);
    const { pml } = scene;
    for (const kind of KINDS) {
      const params = { name: `${kind}__greet`, arguments: { name: "Ann" } };
      const { result } = await pml.request("prompts/get", params);
      const [message] = result?.messages as unknown as [{ content: { text: string } }];
      assert.equal(message.content.text, '["greet",{"name":"Ann"}]');
      const argument = { name: "name", value: "A" };
      const refs = [
        { type: "ref/prompt", name: `${kind}__greet` },
        { type: "ref/resource", uri: `pml://${kind}/test://item/{id}` },
      ];
      const lines = await Promise.all(refs.map(async (ref) => {
        const { result } = await pml.request("completion/complete", { ref, argument });
        return (result?.completion?.values as unknown as string[])[0];
      }));
      assert.deepEqual(lines.map((one) => JSON.parse(one ?? "")), [
        { type: "ref/prompt", name: "greet" },
        { type: "ref/resource", uri: "test://item/{id}" },
      ]);
    }
    const unknown = await pml.request("prompts/get", { name: "nobody__greet" });
    assert.match(unknown.error?.message ?? "", /Cannot find the prompt/);
  });

  Deno.test(`a result keeps every field that its server wrote, on ${era}`, async () => {
    await using scene = await sceneOf(era);
    for (const kind of KINDS) {
      for (const name of ["call", `${kind}__link`]) {
        const args = name === "call" ? { tool: `${kind}:link`, arguments: {} } : {};
        const { result } = await scene.pml.callTool(name, args);
        assert.deepEqual(result?.content, [
          { type: "resource_link", uri: "test://linked", name: "linked", "x/kept": { deep: true } },
          { type: "text", text: "see", annotations: { priority: 1, "x/kept": 2 } },
        ]);
        assert.deepEqual(result?.structuredContent, { at: "test://linked" });
        assert.equal(result?._meta?.["x/kept"], 3);
        assert.equal(result?.["x/kept"], 4);
      }
      const params = {
        name: `${kind}__meta`,
        arguments: {},
        _meta: { "x/mine": 1, progressToken: 5 },
      };
      const { result } = await scene.pml.request("tools/call", params);
      const meta = JSON.parse(textOf({ result }));
      assert.equal(meta["x/mine"], 1);
      assert.notEqual(meta.progressToken, 5, "the client's token is not the server's");
    }
  });
}

Deno.test("requests for resources and prompts without a matching rule are approved with their server", async () => {
  await using scene = await sceneOf("2025-11-25", { rules: { allow: [], ask: ["*"] } });
  const prompts = await listed(scene.pml, "prompts/list", { key: "prompts", least: 2 });
  assert.equal(prompts.length, 2);
  const waits = await scene.pml.request("resources/read", { uri: "pml://legacy/test://a" });
  assert.match(waits.error?.message ?? "", /without the user's approval/);
  await using open = await sceneOf("2025-11-25", { rules: { allow: [] } });
  const read = await open.pml.request("resources/read", { uri: "pml://legacy/test://a" });
  assert.equal(read.error, undefined);
  await using closed = await sceneOf("2025-11-25", {
    rules: { deny: ["legacy:@resources", "modern:*"] },
  });
  const uris = (await listed(closed.pml, "resources/list", { key: "resources" })).map(({ uri }) =>
    uri
  );
  assert.deepEqual(uris, ["pml://servers", "pml://metrics"]);
  for (const kind of KINDS) {
    const { error } = await closed.pml.request("resources/read", {
      uri: `pml://${kind}/test://a`,
    });
    assert.match(error?.message ?? "", /a deny rule matches/);
  }
  const left = await listed(closed.pml, "prompts/list", { key: "prompts", least: 1 });
  assert.equal(left.length, 1);
  await using untrusted = await sceneOf("2025-11-25", { trusted: false });
  assert.equal((await listed(untrusted.pml, "prompts/list", { key: "prompts" })).length, 0);
  const { error } = await untrusted.pml.request("resources/read", {
    uri: "pml://legacy/test://a",
  });
  assert.match(error?.message ?? "", /without the user's approval/);
  assert.deepEqual(await ledgerOf(untrusted.ws, "legacy"), [], "nothing of it was started");
});

Deno.test("lists are cached across starts, and requested again when their server runs", async () => {
  await using scene = await sceneOf("2025-11-25", { servers: { legacy: full("legacy") } });
  const { ws, pml } = scene;
  await pml.callTool("search", { query: "link" });
  await listed(pml, "prompts/list", { key: "prompts", least: 1 });
  await pml.close();
  await using again = new RawStdio(ws);
  await again.open();
  const before = (await ledgerOf(ws, "legacy")).length;
  assert.match(textOf(await again.callTool("search", { query: "link" })), /legacy:link/);
  assert.equal((await listed(again, "prompts/list", { key: "prompts" })).length, 1);
  assert.equal((await ledgerOf(ws, "legacy")).length, before, "it was started for a list");
  await again.callTool("call", { tool: "legacy:link", arguments: {} });
  await until(async () => {
    const lines = (await ledgerOf(ws, "legacy")).slice(before);
    return ["tools/list", "prompts/list"].every((method) =>
      lines.some((line) => line.startsWith(method))
    );
  });
  // The restarted server may be another program, because a developer changes it.
  const pid = (await ledgerOf(ws, "legacy")).findLast((line) => line.startsWith("start "));
  Deno.kill(Number(pid?.slice("start ".length)), "SIGKILL");
  const killed = (await ledgerOf(ws, "legacy")).length;
  await until(async () => {
    await again.callTool("call", { tool: "legacy:link", arguments: {} });
    const lines = (await ledgerOf(ws, "legacy")).slice(killed);
    return lines.some((line) => line.startsWith("tools/list"));
  });
});

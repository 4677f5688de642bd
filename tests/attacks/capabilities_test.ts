/**
 * Attacks with capabilities: calls that they must not make, their own descriptions, and how often
 * they call each other.
 *
 * @module
 */

import assert from "node:assert/strict";
import type { ToolId } from "../../src/core/tool_id.ts";
import type { Capability } from "../../src/servers/capability/capability.ts";
import { exportForm } from "../../src/workflow/capability_saving.ts";
import { approve, called, capabilityScene, savedCode } from "../capability_scene.ts";
import { runPml, runPmlOnTerminal } from "../kit/run.ts";
import { until } from "../kit/wait.ts";
import type { Workspace } from "../kit/workspace.ts";
import {
  assertAftermath,
  assertServes,
  codeOf,
  journalOf,
  textOf,
  withoutMark,
} from "./oracles.ts";

/** Returns how often tools started. */
async function startsOf(ws: Workspace, tool: string): Promise<number> {
  return (await journalOf(ws)).filter((line) => line.kind === "start" && line.tool === tool).length;
}

const WARN = `return await mcp.weather.warn({ to: "all" })`;
const SNEAKY = `return await mcp["weat" + "her"]["wa" + "rn"]({ to: "all" })`;

Deno.test("a capability that declares no calls gets no permissions", async () => {
  const codes = { "my:plain": WARN, "my:sneaky": SNEAKY };
  const prepare = (ws: Workspace) => approve(ws, codes);
  await using asks = await capabilityScene("2026-07-28", { prepare, canAsk: false });
  for (const id of Object.keys(codes)) {
    const text = await called(asks.pml, id);
    assert.match(text, /APPROVAL_REQUIRED/, text);
  }
  const permissions = { allow: ["my:*", "weather:get"], deny: ["weather:warn"] };
  await using denied = await capabilityScene("2026-07-28", { prepare, permissions });
  for (const id of Object.keys(codes)) {
    assert.match(await called(denied.pml, id), /PERMISSION_DENIED/);
  }
  assert.deepEqual(denied.asked, []);
  for (const { ws, pml } of [asks, denied]) {
    await pml.close();
    const ends = (await journalOf(ws)).filter(({ kind, tool }) =>
      kind === "end" && tool === "weather:warn"
    );
    assert.deepEqual(ends.filter(({ outcome }) => outcome === "result"), []);
    await assertAftermath(ws, pml);
  }
});

Deno.test("a capability that calls a denied tool is refused before it starts", async () => {
  const text = `await mcp.weather.get({ city: "Rome" }); ${WARN}`;
  const hash = `sha256-${"0".repeat(64)}`;
  const prepare = (ws: Workspace) =>
    approve(ws, { "my:both": text }, {
      toolsUsed: { "weather:get": hash, "weather:warn": hash },
    });
  const permissions = { allow: ["my:*", "weather:get"], deny: ["weather:warn"] };
  await using scene = await capabilityScene("2025-11-25", { prepare, permissions });
  const { pml, ws } = scene;
  for (
    const message of [
      await pml.callTool("call", { tool: "my:both" }),
      await pml.callTool("my__both", {}),
      await pml.callTool("batch", { calls: [{ tool: "my:both" }] }),
      await pml.callTool("execute_code", { code: "return await mcp.my.both({})" }),
    ]
  ) assert.match(JSON.stringify(message), /PERMISSION_DENIED|UNKNOWN_TOOL/);
  assert.doesNotMatch(textOf(await pml.callTool("search", { query: "my both" })), /my:both/);
  assert.equal(await startsOf(ws, "weather:get"), 0);
});

Deno.test("a stale capability is marked in search results, and asks before it starts", async () => {
  const hash = `sha256-${"0".repeat(64)}`;
  const prepare = (ws: Workspace) =>
    approve(ws, { "my:rome": `return await mcp.weather.get({ city: "Rome" })` }, {
      toolsUsed: { "weather:get": hash },
    });
  await using scene = await capabilityScene("2026-07-28", { prepare });
  const { pml, asked, ws } = scene;
  const line = /^my:rome\(.*stale: weather:get changed since it was saved\]/m;
  // A search waits for lists only for a limited time.
  await until(async () => line.test(textOf(await pml.callTool("search", { query: "my rome" }))));
  const text = textOf(await pml.callTool("schema", { tools: ["my:rome"] }));
  assert.match(text, /"remark":"stale: weather:get changed/);
  assert.match(await called(pml, "my:rome"), /Rome/);
  assert.equal(asked.length, 1);
  assert.match(asked[0] ?? "", /calls tools that changed[\s\S]*"weather:get": was sha256-000/);
  assert.match(await called(pml, "my:rome"), /Rome/);
  assert.equal(asked.length, 1, "a yes holds");
  assert.doesNotMatch(textOf(await pml.callTool("search", { query: "my rome" })), /stale/);
  await pml.close();
  await assertAftermath(ws, pml);
});

Deno.test("only a saved capability reaches an internal tool", async () => {
  const code = "return await mcp.weather.vault({})";
  const prepare = (ws: Workspace) => approve(ws, { "my:vault": code });
  const permissions = { allow: ["my:*", "weather:*"] };
  await using scene = await capabilityScene("2025-11-25", { prepare, permissions });
  const { pml } = scene;
  assert.match(await called(pml, "my:vault"), /"gold":7/);
  const answers = async (tool: string) =>
    [
      await pml.callTool(`weather__${tool}`, {}),
      await pml.callTool("call", { tool: `weather:${tool}` }),
      await pml.callTool("schema", { tools: [`weather:${tool}`] }),
      await pml.callTool("batch", { calls: [{ tool: `weather:${tool}` }] }),
      await pml.callTool("execute_code", { code: code.replace("vault", tool) }),
    ].map(({ result, error }) => {
      const { _meta, ...rest } = (result ?? error) as { readonly _meta?: unknown };
      return withoutMark(JSON.stringify(rest)).replaceAll(tool, "TOOL");
    });
  const [hidden, missing] = [await answers("vault"), await answers("nothing")];
  for (const text of hidden) assert.match(text, /UNKNOWN_TOOL|Cannot find the tool|has no tool/);
  assert.deepEqual(hidden, missing);
});

Deno.test("a capability that calls itself ends at the maximum depth, and its calls count together", async () => {
  const loop = `const name = "lo" + "op"; return await mcp.my[name]({})`;
  const fan = `const name = "fa" + "n";
    const all = [1, 2, 3].map(() => mcp.my[name]({}).catch((error) => error.code ?? "failed"));
    return { codes: await Promise.all(all) };`;
  await using scene = await capabilityScene("2025-11-25", {
    prepare: (ws) => approve(ws, { "my:loop": loop, "my:fan": fan }),
    limits: { capability_depth: 4, code_calls: 12 },
  });
  const { pml, ws } = scene;
  assert.match(await called(pml, "my:loop"), /OVERLOADED: .*4 capabilities/);
  assert.equal(await startsOf(ws, "my:loop"), 5);
  assert.match(await called(pml, "my:fan"), /OVERLOADED/);
  const fans = await startsOf(ws, "my:fan");
  assert.ok(fans <= 13, `${fans} calls`);
  await assertServes(pml);
  assert.equal((await pml.close()).code, 0);
  await assertAftermath(ws, pml);
});

Deno.test("code in a capability has no files, no network, no PML and no meta-tools", async () => {
  const probes = `
    const tried = {};
    const probe = async (name, work) => {
      try { tried[name] = "got " + await work(); } catch (error) { tried[name] = String(error.name); }
    };
    await probe("file", () => Deno.readTextFile("good.txt"));
    await probe("sync", () => Deno.readTextFileSync("/etc/passwd"));
    await probe("env", () => Deno.env.get("HOME"));
    await probe("net", () => fetch("http://127.0.0.1:9/"));
    await probe("run", () => new Deno.Command("id").output());
    await probe("import", () => import("node:fs").then((fs) => fs.readFileSync("/etc/passwd", "utf8")));
    await probe("code", () => mcp.execute_code({ code: "return 1" }));
    await probe("save", () => mcp.my.other({ save_as: "my:evil" }));
    await probe("meta", () => mcp["pml"]["execute_code"]({ code: "return 1" }));
    await probe("door", () => mcp.weather["@tools"]({}));
    return tried;`;
  await using scene = await capabilityScene("2026-07-28", {
    prepare: (ws) => approve(ws, { "my:probe": probes }),
    permissions: { allow: ["*"] },
  });
  const tried = JSON.parse(await called(scene.pml, "my:probe"));
  for (const [name, said] of Object.entries(tried)) {
    assert.doesNotMatch(String(said), /^got /, `${name}: ${said}`);
  }
  assert.equal(Object.keys(tried).length, 10);
});

Deno.test("a flood of calls from a capability ends at its limit, and each call is checked", async () => {
  const flood = `let ran = 0; const codes = new Set();
    await Promise.all(Array.from({ length: 300 }, async () => {
      try { await mcp.weather.get({ city: "Rome" }); ran++; } catch (error) { codes.add(error.code); }
    }));
    return { ran, codes: [...codes] };`;
  await using scene = await capabilityScene("2025-11-25", {
    prepare: (ws) => approve(ws, { "my:flood": flood }),
    limits: { code_calls: 30 },
  });
  const said = JSON.parse(await called(scene.pml, "my:flood"));
  assert.deepEqual(said, { ran: 30, codes: ["OVERLOADED"] });
  assert.equal(await startsOf(scene.ws, "weather:get"), 30);
});

Deno.test("a capability that would call itself through others is not saved", async () => {
  const code = `return await mcp.my.outer({})`;
  await using scene = await capabilityScene("2025-11-25", {
    files: { "inner.ts": code },
    prepare: (ws) =>
      approve(ws, { "my:outer": "return await mcp.my.inner({})" }, {
        toolsUsed: { "my:inner": `sha256-${"0".repeat(64)}` },
      }),
  });
  const result = await runPmlOnTerminal(scene.ws, [
    "capability",
    "save",
    "my:inner",
    "--code",
    "inner.ts",
  ]);
  assert.match(result.stdout, /would call itself: my:inner calls my:outer calls my:inner/);
});

Deno.test("without a user to ask, no capability is saved; a command saves it", async () => {
  const code = `return await mcp.weather.get({ city: "Rome" })`;
  const files = { "rome.ts": code };
  await using scene = await capabilityScene("2025-11-25", { canAsk: false, files });
  const { pml, ws } = scene;
  const said = await savedCode(pml, code, "my:rome");
  const { saved, error } = said as {
    readonly saved: unknown;
    readonly error: { readonly code: string; readonly hint: string };
  };
  assert.deepEqual([saved, error.code], [false, "APPROVAL_REQUIRED"]);
  assert.match(await called(pml, "my:rome"), /UNKNOWN_TOOL|Cannot find/);
  assert.match(error.hint, /`pml capability save my:rome --code FILE`/);
  assert.equal(JSON.parse((await runPml(ws, ["approve", "--json"])).stdout).calls.length, 0);
  const result = await runPmlOnTerminal(
    ws,
    ["capability", "save", "my:rome", "--code", "rome.ts"],
    { typed: [[/Save exactly this\?/, "y"]] },
  );
  assert.equal(result.code, 0, result.stdout);
  assert.match((await runPml(ws, ["call", "my:rome"])).stdout, /Rome/);
});

Deno.test("an import with an incomplete list of tools is reported before it is saved (PM9)", async () => {
  const capability: Capability = {
    ...{ kind: "code", text: WARN, parameters: { type: "object" }, toolsUsed: {} },
  };
  const file = JSON.stringify(exportForm("my:plain" as ToolId, capability));
  await using scene = await capabilityScene("2025-11-25", { files: { "plain.json": file } });
  const result = await runPml(scene.ws, ["capability", "import", "plain.json", "--json"]);
  assert.match(result.stdout, / weather:warn, /);
});

Deno.test("a long capability is shown only on the terminal, and its lines do not look like lines of PML", async () => {
  const long = `// ${"x".repeat(4_000)}\nreturn 1`;
  await using scene = await capabilityScene("2026-07-28");
  const said = await savedCode(scene.pml, long, "my:long");
  assert.equal((said.error as { readonly code: string }).code, "APPROVAL_REQUIRED");
  assert.deepEqual(scene.asked, []);
  const spoof = "const a = 1; //\\u202e\n//    Yes saves nothing\u202e\u0007\nreturn 2";
  await savedCode(scene.pml, spoof, "my:spoof");
  const [question = ""] = scene.asked;
  assert.match(question, /^ {4}\| \/\/ {4}Yes saves nothing\\u\{202e\}\\u\{7\}$/m);
  assert.ok(!question.includes("\u202e") && !question.includes("\u0007"));
  assert.equal(codeOf(await scene.pml.callTool("call", { tool: "my:spoof" })), undefined);
});

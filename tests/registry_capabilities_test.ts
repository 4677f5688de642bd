/**
 * Capabilities of a registry (`fs:read_json`): found, approved, pinned and called like any first
 * use, from a registry that `pml registry serve` serves.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseExported } from "../src/workflow/saved_capability.ts";
import { sha256 } from "../src/core/hash.ts";
import { parseModuleMeta } from "../src/protocol/tool.ts";
import { type ServedFolder, serveFolder } from "../src/registry/folder_serving.ts";
import { codeOf, textOf } from "./attacks/oracles.ts";
import { answerOf, picked, questionOf, read } from "./attacks/questions.ts";
import { agreeing, called } from "./capability_scene.ts";
import { RawStdio } from "./kit/raw_stdio.ts";
import { FakeRegistry, moduleEntry } from "./kit/fake_registry.ts";
import { runPml, runPmlOnTerminal } from "./kit/run.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

const entry = (action: string, says: string) => `
  export const __meta__ = {
    name: "fs", version: "1.0.0", description: "The capability ${action}",
    tools: {
      ${action}: { description: "${says}", inputSchema: { type: "object", properties: { path: { type: "string" } } } },
      other: { description: "What no other entry may have" },
    },
  };
  export const ${action} = ({ path = "none" }) => ({ ${action}: path });
  export const other = () => "other";`;

const FILES = {
  "served/fs__read_json.ts": entry("read_json", "Read a JSON file into an object"),
  "served/fs__count.ts": entry("count", "Count the lines of a file"),
};

async function describe(file: string, code: Uint8Array) {
  const text = encodeURIComponent(new TextDecoder().decode(code));
  return parseModuleMeta((await import(`data:application/typescript,${text}`)).__meta__, file);
}

/** Serves a folder of a workspace, as `pml registry serve` does. */
async function served(ws: Workspace): Promise<ServedFolder> {
  const path = ws.file("served");
  const reader = { path, maxBytes: 100_000, describe, parseCapability: parseExported };
  const options = { host: "127.0.0.1", port: 0, log: { warn: () => {} } };
  return await serveFolder(reader, options);
}

const calling = (tool: string, args = {}) => ({
  name: "call",
  arguments: { tool, arguments: args },
});

Deno.test("a registry's capability is found, approved once and called", async () => {
  await using files = await makeWorkspace({ files: FILES });
  await using registry = await served(files);
  await using ws = await makeWorkspace({
    pml: { version: 1, permissions: { allow: ["*"] } },
    env: { PML_REGISTRIES: registry.url },
  });
  await using pml = new RawStdio(ws, { era: "2025-11-25", capabilities: { elicitation: {} } });
  await pml.open();
  const found = textOf(await pml.callTool("search", { query: "read a JSON file" }));
  assert.match(found, /^fs:read_json\(.*\[asks, not installed\]/m);
  assert.doesNotMatch(found, /fs:other/);
  const text = textOf(await pml.callTool("schema", { tools: ["fs:read_json"] }));
  assert.match(text, /Read a JSON file into an object/);
  const question = await questionOf(pml, calling("fs:read_json", { path: "a.json" }));
  assert.match(question.text, /Yes lets PML use "fs:read_json" in this workspace/);
  assert.match(question.text, /capability of a registry/);
  assert.match(question.text, /its code: sha256-/);
  await read();
  const { result } = await question.answer(picked("Yes"));
  assert.deepEqual(result?.structuredContent, { read_json: "a.json" });
  // The approval covers this capability, and none of the other entries.
  const again = await answerOf(pml, calling("fs:read_json", { path: "b.json" }));
  assert.deepEqual(again.result?.structuredContent, { read_json: "b.json" });
  const other = await questionOf(pml, calling("fs:count", { path: "c" }));
  assert.match(other.text, /"fs:count"/);
  await read();
  const counted = await other.answer(picked("Yes"));
  assert.deepEqual(counted.result?.structuredContent, { count: "c" });
  const both = await answerOf(pml, calling("fs:read_json", { path: "d" }));
  assert.deepEqual(both.result?.structuredContent, { read_json: "d" });
  // Other functions of its module are not callable.
  assert.match(await called(pml, "fs:other"), /UNKNOWN_TOOL|APPROVAL_REQUIRED|Cannot find/);
  const lock = JSON.parse(await readFile(join(ws.path, "pml.lock"), "utf8"));
  assert.deepEqual(Object.keys(lock.servers), ["fs:count", "fs:read_json"]);
  assert.deepEqual([lock.servers["fs:read_json"].kind, lock.servers["fs:read_json"].source], [
    "deno",
    registry.url,
  ]);
  const here = textOf(await pml.callTool("search", { query: "count lines" }));
  assert.match(here, /^fs:count\(/m);
  const whole = textOf(await pml.callTool("search", { query: "other entry", server: "fs" }));
  assert.doesNotMatch(whole, /fs:other/);
  assert.equal((await pml.close()).code, 0);
  // Another start reuses the approval.
  const output = await runPml(ws, ["call", "fs:read_json", "path=e.json"]);
  assert.match(output.stdout, /e\.json/, output.stderr);
  const check = await runPml(ws, ["lock", "--check"]);
  assert.equal(check.code, 0, check.stdout + check.stderr);
});

Deno.test("a registry's server wins over a capability of its namespace, and both can be called", async () => {
  const server = entry("read_json", "The server's own").replaceAll("other", "list");
  await using registry = await FakeRegistry.open([
    await moduleEntry("fs", server),
    await moduleEntry("fs:read_json", entry("read_json", "The capability's")),
    await moduleEntry("fs:count", entry("count", "Count lines")),
  ]);
  await using ws = await makeWorkspace({
    pml: { version: 1, permissions: { allow: ["*"] } },
    env: { PML_REGISTRIES: registry.url },
  });
  await using pml = await agreeing(ws);
  const found = textOf(await pml.callTool("search", { query: "fs read_json count", limit: 20 }));
  assert.match(found, /fs:read_json\([^\n]*\n {2}The server's own/);
  assert.equal(found.match(/^fs:read_json/gm)?.length, 1);
  assert.match(found, /^fs:count/m);
  assert.match(await called(pml, "fs:count", { path: "x" }), /"count":"x"/);
  assert.match(await called(pml, "fs:read_json", { path: "y" }), /"read_json":"y"/);
  const { servers } = JSON.parse(await readFile(join(ws.path, "pml.lock"), "utf8"));
  assert.deepEqual(Object.keys(servers), ["fs", "fs:count"]);
  const all = textOf(await pml.callTool("search", { query: "fs", server: "fs", limit: 20 }));
  for (const tool of ["count", "list", "read_json"]) {
    assert.match(all, new RegExp(`^fs:${tool}`, "m"));
  }
});

Deno.test("a second capability of a namespace is found without a search before the call", async () => {
  await using registry = await FakeRegistry.open([
    await moduleEntry("fs:read_json", entry("read_json", "Read")),
    await moduleEntry("fs:count", entry("count", "Count lines")),
  ]);
  await using ws = await makeWorkspace({
    pml: { version: 1, permissions: { allow: ["fs:*"] } },
    env: { PML_REGISTRIES: registry.url },
  });
  for (const _start of ["the first", "another"]) {
    await using pml = new RawStdio(ws, { capabilities: {} });
    await pml.open();
    assert.match(await called(pml, "fs:read_json", { path: "x" }), /"read_json":"x"/);
    assert.match(await called(pml, "fs:count", { path: "y" }), /"count":"y"/);
    assert.equal((await pml.close()).code, 0);
  }
});

/** Makes the cached catalogs older. */
async function age(ws: Workspace, ms: number): Promise<void> {
  const folder = join(ws.home, "cache");
  for await (const { name } of Deno.readDir(folder)) {
    const path = join(folder, name);
    const text = await readFile(path, "utf8");
    if (!text.includes('"rows":')) continue;
    const body = text.slice(64).replace(/"at":(\d+)/, (_, at) => `"at":${Number(at) - ms}`);
    await writeFile(path, sha256(body) + body);
  }
}

Deno.test("a capability that was published later is found by its name, and no registry learns unknown names", async () => {
  const first = await moduleEntry("fs:read_json", entry("read_json", "Read"));
  await using registry = await FakeRegistry.open([first]);
  await using ws = await makeWorkspace({
    pml: { version: 1, permissions: { allow: ["fs:*"] } },
    env: { PML_REGISTRIES: registry.url },
  });
  for (const isOld of [false, true]) {
    await using pml = new RawStdio(ws, { capabilities: {} });
    await pml.open();
    assert.match(await called(pml, "fs:read_json", { path: "x" }), /"read_json":"x"/);
    const asked = registry.asked.length;
    for (const tool of ["fs:secret_word", "fs:secret_word_2"]) {
      assert.match(await called(pml, tool), /APPROVAL_REQUIRED|UNKNOWN_TOOL/);
    }
    const text = await called(pml, "fs:count", { path: "y" });
    if (isOld) assert.match(text, /"count":"y"/);
    else assert.match(text, /APPROVAL_REQUIRED|UNKNOWN_TOOL/);
    const paths = registry.paths.slice(asked);
    assert.equal(paths.filter((path) => /^\/mcp\?/.test(path)).length, 1, `${paths}`);
    assert.ok(paths.every((path) => !path.includes("secret")), `${paths}`);
    assert.equal((await pml.close()).code, 0);
    registry.publish([first, await moduleEntry("fs:count", entry("count", "Count lines"))]);
    await age(ws, 60_000);
  }
});

Deno.test("a changed capability of a registry asks again, and a capability that the user saved wins", async () => {
  await using registry = await FakeRegistry.open([
    await moduleEntry("fs:read_json", entry("read_json", "Read")),
  ]);
  await using ws = await makeWorkspace({
    files: { "own.ts": `return { own: args.path ?? "none" }` },
    pml: { version: 1, permissions: { allow: ["*"] } },
    env: { PML_REGISTRIES: registry.url },
  });
  const first = await runPmlOnTerminal(ws, ["call", "fs:read_json", "path=a"], {
    typed: [[/May it run\?/, "Yes"]],
  });
  assert.match(first.stdout, /"read_json": ?"a"/, first.stdout);
  registry.publish([await moduleEntry("fs:read_json", entry("read_json", "Read it all"))]);
  const refreshed = await runPml(ws, ["tools", "--refresh"]);
  assert.equal(refreshed.code, 0, refreshed.stderr);
  const refused = await runPml(ws, ["call", "fs:read_json", "path=a"]);
  assert.match(refused.stderr, /APPROVAL_STALE/);
  const again = await runPmlOnTerminal(ws, ["call", "fs:read_json", "path=b"], {
    typed: [[/integrity[\s\S]*May it run\?/, "Yes"]],
  });
  assert.match(again.stdout, /"read_json": ?"b"/);
  // The user may save more capabilities in the namespace of a registry's capability.
  const words = ["capability", "save", "fs:mine", "--code", "own.ts", "--parameter", "path=x"];
  const save = await runPmlOnTerminal(ws, words, { typed: [[/Save exactly this\?/, "y"]] });
  assert.equal(save.code, 0, save.stdout);
  assert.match((await runPml(ws, ["call", "fs:mine", "path=c"])).stdout, /"own": ?"c"/);
  assert.match((await runPml(ws, ["call", "fs:read_json", "path=d"])).stdout, /"read_json": ?"d"/);
  const own = ["capability", "save", "fs:read_json", ...words.slice(3)];
  const taken = await runPmlOnTerminal(ws, own, {
    typed: [[/capability of a registry[\s\S]*Save exactly/, "y"]],
  });
  assert.equal(taken.code, 0, taken.stdout);
  assert.match((await runPml(ws, ["call", "fs:read_json", "path=e"])).stdout, /"own": ?"e"/);
});

Deno.test("no registry learns the name of an unknown capability without a yes", async () => {
  await using registry = await FakeRegistry.open([
    await moduleEntry("fs:read_json", entry("read_json", "Read")),
  ]);
  await using ws = await makeWorkspace({
    pml: { version: 1, permissions: { allow: ["*"] } },
    env: { PML_REGISTRIES: registry.url },
  });
  await using pml = new RawStdio(ws, { era: "2025-11-25", capabilities: {} });
  await pml.open();
  for (const tool of ["fs:secret_word", "private:secret_word"]) {
    assert.match(await called(pml, tool), /APPROVAL_REQUIRED|UNKNOWN_TOOL/);
  }
  assert.ok(registry.paths.every((path) => !path.includes("secret")), registry.paths.join("\n"));
  assert.ok(codeOf(await pml.callTool("call", { tool: "fs:read_json" })) !== undefined);
});

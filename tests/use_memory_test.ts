/**
 * The memory of the use of tools: through a spawned PML, with clients of both revisions, and by
 * `pml memory`.
 *
 * @module
 */

import assert from "node:assert/strict";
import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { sha256 } from "../src/core/hash.ts";
import { RawStdio } from "./kit/raw_stdio.ts";
import { runPml } from "./kit/run.ts";
import { tinyServer } from "./kit/tiny_server.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";
import { assertError } from "./cli_greeter.ts";
import { textOf } from "./attacks/oracles.ts";

const SECRET = "hunter2-correct-horse";
/** Returns a user's record with a secret, in values and keys, or fails with the secret. */
const CRM = `params.arguments.fail ? (() => { throw new Error("${SECRET}") })() : ({
  name: "${SECRET}", age: 41, mails: { "ada@example.com": "${SECRET}" },
})`;

async function sceneOf(config?: string): Promise<Workspace> {
  const ws = await makeWorkspace({
    files: { "crm.mjs": tinyServer(CRM), "good.txt": "good\n" },
    pml: {
      version: 1,
      permissions: { allow: ["crm:*", "filesystem:*"] },
      mcpServers: { crm: { command: "node", args: ["crm.mjs"] } },
    },
  });
  if (config !== undefined) await writeFile(join(ws.home, "config.yaml"), config);
  return ws;
}

/** Returns the file of the memory of a workspace and its user. */
function memoryOf(ws: Workspace): string {
  const name = sha256(JSON.stringify([ws.path, null])).slice(0, 32);
  return join(ws.home, "memory", `${name}.json`);
}

interface Shown {
  readonly enabled: boolean;
  readonly tools: readonly {
    readonly id: string;
    readonly calls: number;
    readonly errors: number;
    readonly result: unknown;
    readonly next: Readonly<Record<string, number>>;
  }[];
}

async function shown(ws: Workspace): Promise<Shown> {
  const { code, stdout, stderr } = await runPml(ws, ["memory", "show", "--json"]);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
}

Deno.test("the memory contains only types of arguments and results, and can be cleared", async () => {
  await using ws = await sceneOf();
  {
    await using pml = new RawStdio(ws, { era: "2026-07-28" });
    await pml.open();
    await pml.callTool("search", { query: `who is ${SECRET}` });
    for (let count = 0; count < 3; count++) {
      const { result } = await pml.callTool("crm__tell", { turn: count });
      assert.match(textOf({ result }), new RegExp(SECRET));
      await pml.callTool("filesystem__read_file", { path: "good.txt" });
    }
    await pml.callTool("crm__tell", { fail: true });
    await pml.callTool("filesystem__read_file", { path: 7 });
    const { code } = await pml.close();
    assert.equal(code, 0, pml.stderr);
  }
  if (Deno.build.os !== "windows") {
    assert.equal((await stat(memoryOf(ws))).mode & 0o777, 0o600);
  }
  assert.doesNotMatch(await readFile(memoryOf(ws), "utf8"), /hunter|horse|ada@|good/);
  const { tools } = await shown(ws);
  const [crm, file] = ["crm:tell", "filesystem:read_file"]
    .map((id) => tools.find((one) => one.id === id));
  assert.deepEqual([crm?.calls, crm?.errors, crm?.next], [4, 1, { "filesystem:read_file": 3 }]);
  // A call that never reached its server does not count as use.
  assert.deepEqual([file?.calls, file?.errors], [3, 0]);
  assert.equal(file?.result, undefined, "the text of a file says nothing about other files");
  assert.deepEqual(crm?.result, {
    type: "object",
    properties: {
      name: { type: "string" },
      age: { type: "integer" },
      mails: { type: "object", additionalProperties: { type: "string" } },
    },
    required: ["name", "age", "mails"],
  });
  const types = await runPml(ws, ["types", "crm"]);
  assert.match(types.stdout, /name: string;?\s+age: number/, types.stdout);
  const text = await runPml(ws, ["memory", "show", "crm:tell"]);
  assert.match(
    text.stdout,
    /^crm:tell +4 calls, 1 failed, .* ms.*\n {2}returns .*\n {2}then fil/,
  );
  const cleared = await runPml(ws, ["memory", "clear"]);
  assert.equal(cleared.code, 0, cleared.stderr);
  assert.deepEqual((await shown(ws)).tools, []);
  await assert.rejects(stat(memoryOf(ws)));
});

Deno.test("tools used for a query rank higher in a search for similar words", async () => {
  await using ws = await sceneOf();
  const query = "which text does a file have";
  await using pml = new RawStdio(ws);
  await pml.open();
  const places = async () => {
    const text = textOf(await pml.callTool("search", { query }));
    const names = [...text.matchAll(/^filesystem:(\w+)\(/gm)].map(([, name]) => name);
    assert.ok(names.length > 4, text);
    return [names.indexOf("read_multiple_files"), names.length];
  };
  const [before = 0, count] = await places();
  assert.ok(before > 0);
  for (let again = 0; again < 4; again++) {
    await pml.callTool("filesystem__read_multiple_files", { paths: ["good.txt"] });
    await places();
  }
  assert.deepEqual(await places(), [0, count]);
});

Deno.test("pml memory stores nothing where the user turned it off, and reports wrong usage", async () => {
  for (const config of ["memory: false\n", "memory: { enabled: false }\n"]) {
    await using ws = await sceneOf(config);
    const called = await runPml(ws, ["call", "crm:tell"]);
    assert.equal(called.code, 0, called.stderr);
    await assert.rejects(stat(memoryOf(ws)));
    const off = await runPml(ws, ["memory", "show"]);
    assert.match(off.stderr, /switched off/);
    assert.deepEqual([(await shown(ws)).enabled, (await shown(ws)).tools], [false, []]);
  }
  await using ws = await sceneOf();
  assertError(await runPml(ws, ["memory", "drop"]), { code: "USAGE", exit: 2 });
  await writeFile(join(ws.home, "config.yaml"), "memory: yes please\n");
  const bad = await runPml(ws, ["memory", "show"]);
  assertError(bad, { code: "CONFIG_INVALID", exit: 2 });
  assert.match(bad.stderr, /memory.*true, false, or \{ enabled: false \}/);
});

Deno.test("a broken memory is reported, starts anew, and stops no call", async () => {
  await using ws = await sceneOf();
  await mkdir(dirname(memoryOf(ws)), { recursive: true, mode: 0o700 });
  await writeFile(memoryOf(ws), '{"version": 1, "tools": {"crm:tell": {"hash": "\\u202e"}}}');
  const called = await runPml(ws, ["call", "crm:tell"]);
  assert.equal(called.code, 0, called.stderr);
  assert.match(called.stderr, /Cannot read .*new record/s);
  assert.deepEqual((await shown(ws)).tools.map(({ id, calls }) => [id, calls]), [["crm:tell", 1]]);
});

Deno.test("a list by an intent has the tools of earlier sessions, and stays the same in a session", async () => {
  await using ws = await makeWorkspace({
    files: { "crm.mjs": tinyServer("params.arguments") },
    pml: {
      version: 1,
      permissions: { allow: ["crm:*", "filesystem:*"] },
      mcpServers: { crm: { command: "node", args: ["crm.mjs"] } },
      gateway: { tools_exposure: "semantic" },
      intent: "commit changes of the work tree",
    },
  });
  const lists = async () => {
    await using pml = new RawStdio(ws, { era: "2025-11-25" });
    await pml.open();
    const names = async () => {
      const { result } = await pml.request("tools/list", {});
      return (result?.tools as unknown as { name: string }[]).map(({ name }) => name);
    };
    const first = await names();
    await pml.callTool("call", { tool: "crm:tell", arguments: {} });
    assert.deepEqual(await names(), first);
    assert.equal((await pml.close()).code, 0);
    return first;
  };
  assert.ok(!(await lists()).includes("crm__tell"));
  assert.ok((await lists()).includes("crm__tell"));
  assert.equal((await runPml(ws, ["memory", "clear"])).code, 0);
  assert.ok(!(await lists()).includes("crm__tell"));
});

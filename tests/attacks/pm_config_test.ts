import assert from "node:assert/strict";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Message } from "../kit/json_rpc.ts";
import type { RawStdio } from "../kit/raw_stdio.ts";
import { runPml } from "../kit/run.ts";
import { waitUntil } from "../kit/wait.ts";
import type { Workspace } from "../kit/workspace.ts";
import { codeOf, endWell } from "./oracles.ts";
import { FILES_ALLOWED, makeScene } from "./stage.ts";

const GOOD = JSON.stringify(FILES_ALLOWED);

/** Invalid contents of `.pml.json`, and a part of the error. */
const BAD: Readonly<Record<string, readonly [content: string | Uint8Array, said: RegExp]>> = {
  "nothing": ["", /./],
  "half of it": [GOOD.slice(0, GOOD.length / 2), /./],
  "words": ["allow everything", /./],
  "a list": ["[]", /object/],
  "null": ["null", /object/],
  "no version of its own": ['{"version":null,"permissions":{"allow":["*"]}}', /version/],
  "another version": ['{"version":2}', /version/],
  "a version as text": ['{"version":"1"}', /version/],
  "a text where a list is wanted": ['{"version":1,"permissions":{"allow":"*"}}', /allow/],
  "a list of numbers": ['{"version":1,"permissions":{"deny":[1]}}', /deny/],
  "an object where a list is wanted": ['{"version":1,"permissions":{"deny":{"0":"*"}}}', /deny/],
  "an unknown key": ['{"version":1,"permission":{"deny":["*"]}}', /permission/],
  "an unknown list": ['{"version":1,"permissions":{"denny":["*"]}}', /denny/],
  "a key in other case": ['{"version":1,"Permissions":{}}', /Permissions/],
  "a key twice": [
    '{"version":1,"permissions":{"deny":["filesystem:*"]},"permissions":{"allow":["*"]}}',
    /permissions/,
  ],
  "a list twice": [
    '{"version":1,"permissions":{"deny":["filesystem:*"],"deny":[],"allow":["*"]}}',
    /deny/,
  ],
  "a prototype": ['{"version":1,"__proto__":{"permissions":{"allow":["*"]}}}', /__proto__/],
  "a trap in the permissions": [
    '{"version":1,"permissions":{"__proto__":{"allow":["*"]}}}',
    /__proto__/,
  ],
  "merge markers": [`<<<<<<< HEAD\n${GOOD}\n=======\n${GOOD}\n>>>>>>> other\n`, /./],
  "two values": [`${GOOD}${GOOD}`, /./],
  "invalid UTF-8": [new Uint8Array([...new TextEncoder().encode(GOOD), 0xff]), /./],
  "UTF-16": [new Uint8Array(new Uint16Array([...GOOD].map((c) => c.charCodeAt(0))).buffer), /./],
  "a NUL": [`${GOOD}\0`, /./],
  "10 MB": [`${GOOD}${" ".repeat(10 * 1024 * 1024)}`, /1 MB/],
  "deep brackets": [`{"version":1,"intent":${"[".repeat(50_000)}`, /./],
};

Deno.test("nothing runs under an unreadable file, and calls run again after its repair (PM4)", async () => {
  await using scene = await makeScene();
  const { ws, pml } = scene;
  for (const [name, [content, said]] of Object.entries(BAD)) {
    // In one step: one half of a large file is invalid in another way.
    await writeFile(ws.file("next.json"), content);
    await rename(ws.file("next.json"), ws.file(".pml.json"));
    const code = async () => codeOf(await reading(pml));
    assert.ok(await waitUntil(async () => await code() === "CONFIG_INVALID"), name);
    for (const answer of await everyDoor(pml)) {
      assert.equal(codeOf(answer), "CONFIG_INVALID", `${name}: ${JSON.stringify(answer)}`);
      const text = String(answer.result?.structuredContent?.error?.message);
      assert.match(text, said, name);
      assert.ok(text.includes(".pml.json") && text.length < 4_000, `${name}: ${text}`);
    }
    await writeFile(ws.file(".pml.json"), GOOD);
    assert.ok(await waitUntil(async () => await code() === undefined), `mended: ${name}`);
  }
  await endWell(ws, pml);
});

/** Entries in its place that are not regular files. */
const NO_FILES: Readonly<Record<string, (path: string, ws: Workspace) => Promise<unknown>>> = {
  "a folder": (path) => mkdir(path),
  "a pipe": (path) => new Deno.Command("mkfifo", { args: [path] }).output(),
  "a link to nothing": (path) => Deno.symlink("none", path),
  "a link to itself": (path) => Deno.symlink(".pml.json", path),
  "a device": (path) => Deno.symlink("/dev/zero", path),
};

Deno.test("nothing runs if the file is not a regular file, and nothing hangs (PM4)", async () => {
  for (const [name, make] of Object.entries(NO_FILES)) {
    const prepare = async (ws: Workspace) => {
      await rm(ws.file(".pml.json"));
      await make(ws.file(".pml.json"), ws);
    };
    await using scene = await makeScene({ prepare });
    for (const answer of await everyDoor(scene.pml)) {
      assert.equal(codeOf(answer), "CONFIG_INVALID", `${name}: ${JSON.stringify(answer)}`);
    }
    assert.equal((await scene.pml.close()).code, 0);
    const result = await runPml(scene.ws, ["call", "filesystem:read_file", "path=good.txt"]);
    assert.equal(result.code, 2, `${name}: ${result.stderr}`);
    assert.match(result.stderr, /CONFIG_INVALID/);
  }
});

Deno.test("a missing file means the defaults: reading runs, writing asks (PM4)", async () => {
  await using scene = await makeScene({
    capabilities: {},
    prepare: (ws) => rm(ws.file(".pml.json")),
    env: { PML_TRUST: "" },
  });
  const { ws, pml } = scene;
  assert.equal(codeOf(await reading(pml)), undefined);
  const wrote = await pml.callTool("filesystem__write_file", { path: "a", content: "b" });
  assert.equal(codeOf(wrote), "APPROVAL_REQUIRED");
  await endWell(ws, pml);
});

Deno.test("a file without a version is read as version 1 (PM4)", async () => {
  const pml = { permissions: { allow: ["filesystem:*"], deny: ["filesystem:move_file"] } };
  await using scene = await makeScene({ pml, era: "2026-07-28" });
  const wrote = await scene.pml.callTool("filesystem__write_file", { path: "a", content: "b" });
  assert.equal(codeOf(wrote), undefined, JSON.stringify(wrote));
  const args = { source: "a", destination: "b" };
  const moved = await scene.pml.callTool("filesystem__move_file", args);
  assert.equal(codeOf(moved), "PERMISSION_DENIED");
  await endWell(scene.ws, scene.pml);
});

Deno.test("a comment is not an error (PM4)", async () => {
  await using scene = await makeScene({ pml: `// mine\n/* {"version":2} */${GOOD}//end` });
  await endWell(scene.ws, scene.pml, { calls: 1 });
});

/** Invalid contents of the user's own `config.yaml`. */
const BAD_PERSON = [
  "limits:\n  input_bytes: lots\n",
  "limits:\n  input_byte: 4096\n",
  "limits:\n  call_ms: -1\n",
  "limits: {call_ms: 1000, call_ms: 2000}\n",
  "permissions:\n  deny: filesystem:*\n",
  "permissions: &a\n  deny: [*a]\n",
  "- 1\n",
  "a: [\n",
  "\t\0",
];

Deno.test("nothing runs under a broken file of the user either (PM4)", async () => {
  for (const text of BAD_PERSON) {
    const prepare = (ws: Workspace) => writeFile(join(ws.home, "config.yaml"), text);
    await using scene = await makeScene({ prepare });
    const answer = await reading(scene.pml);
    assert.equal(codeOf(answer), "CONFIG_INVALID", `${text}: ${JSON.stringify(answer)}`);
    assert.match(JSON.stringify(answer), /config\.yaml/);
    assert.equal((await scene.pml.close()).code, 0);
  }
});

async function reading(pml: RawStdio): Promise<Message> {
  return await pml.callTool("filesystem__read_file", { path: "good.txt" });
}

async function everyDoor(pml: RawStdio): Promise<readonly Message[]> {
  const call = { tool: "filesystem:read_file", arguments: { path: "good.txt" } };
  return [
    await reading(pml),
    await pml.callTool("call", call),
    await pml.callTool("batch", { calls: [call] }),
    await pml.callTool("search", { query: "read" }),
    await pml.callTool("schema", { tools: [call.tool] }),
  ];
}

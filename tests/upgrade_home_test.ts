/**
 * A home and a workspace of an earlier version of PML (`tests/fixtures`, created by `deno task
 * old-home`): approvals, sign-ins and saved capabilities work without a new question, and the
 * journal can be read.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Era, ERAS, type Message } from "./kit/json_rpc.ts";
import { OldSite, placeOldHome, readOldHome, signInOf } from "./kit/old_home.ts";
import { servePml } from "./kit/pml_serve.ts";
import { RawStdio } from "./kit/raw_stdio.ts";
import { runPml } from "./kit/run.ts";
import type { Workspace } from "./kit/workspace.ts";

const HOME = await readOldHome("97268c9a");
const MS = 60_000;

/** The members of `_meta` in calls of Claude Code and VS Code. */
const METAS: Readonly<Record<Era, Readonly<Record<string, unknown>>>> = {
  "2025-11-25": { "claudecode/toolUseId": "toolu_01", progressToken: 7 },
  "2026-07-28": { progressToken: "one", "vscode.conversationId": "two", "vscode.requestId": "3" },
};

/** A copy of the earlier version's home in a temporary folder, and the servers that it uses. */
interface Upgraded extends AsyncDisposable {
  readonly ws: Workspace;
  readonly site: OldSite;
}

async function upgraded(): Promise<Upgraded> {
  const site = await OldSite.open(signInOf(HOME));
  const ws = await placeOldHome(HOME, site);
  return {
    ws,
    site,
    [Symbol.asyncDispose]: async () => {
      await ws[Symbol.asyncDispose]();
      await site[Symbol.asyncDispose]();
    },
  };
}

/** Runs a command. Returns its stdout. */
async function run(ws: Workspace, args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await runPml(ws, args, { ms: MS });
  assert.equal(code, 0, `pml ${args.join(" ")}: ${stdout}${stderr}`);
  return stdout;
}

/** Starts `pml stdio` for a client that records the texts of questions, and declines all. */
async function openClient(ws: Workspace, era: Era) {
  const requests: string[] = [];
  const answer = (_method: string, params: Record<string, unknown>) => {
    requests.push(String(params.message));
    return { action: "decline" };
  };
  const pml = new RawStdio(ws, { era, answer });
  await pml.open();
  return { asked: requests, pml };
}

/** Returns the first line of a result. */
function lineOf({ result, error }: Message): string {
  const content = result?.content as readonly { readonly text: string }[] | undefined;
  return (content?.[0]?.text ?? JSON.stringify(error)).split("\n")[0] ?? "";
}

/** Returns the servers of `pml.lock`, without the pins of instructions. */
async function lockOf(ws: Workspace): Promise<unknown> {
  const { servers } = JSON.parse(await readFile(ws.file("pml.lock"), "utf8"));
  for (const { tools } of Object.values<{ tools: Record<string, string> }>(servers)) {
    delete tools["@instructions"];
  }
  return servers;
}

function callOf(tool: string): Record<string, unknown> {
  return { tool, arguments: {} };
}

for (const era of ERAS) {
  Deno.test(`approved calls of an earlier version run without a question, on ${era}`, async () => {
    await using scene = await upgraded();
    const { ws, site } = scene;
    const lock = await lockOf(ws);
    const { asked, pml: client } = await openClient(ws, era);
    await using pml = client;
    await pml.request("tools/list");
    // The type check of code takes seconds, and is the same in both revisions.
    const calls = HOME.calls.filter(({ name }) => name === "call" || era === "2025-11-25");
    for (const { name, args, text } of calls) {
      const params = { name, arguments: args, _meta: METAS[era] };
      const line = lineOf(await pml.request("tools/call", params, { ms: MS }));
      assert.equal(line, text, `${JSON.stringify(args)} ${asked} ${pml.stderr}`);
    }
    assert.deepEqual(asked, []);
    assert.equal(site.refreshes, 1, "the sign-in is renewed by its refresh token");
    assert.equal((await pml.close()).code, 0);
    assert.doesNotMatch(pml.stderr, / (?:warn|error) /);
    await run(ws, ["lock", "--check"]);
    // Only the pins of instructions are new.
    assert.deepEqual(await lockOf(ws), lock);
  });
}

Deno.test("decisions and approved hashes of an earlier version stay", async () => {
  await using scene = await upgraded();
  const decisions: Record<string, unknown> = {};
  for (const tool of Object.keys(HOME.decisions)) {
    const { verdict, rule, approved } = JSON.parse(await run(scene.ws, ["why", tool, "--json"]));
    decisions[tool] = { verdict, rule, approved };
  }
  assert.deepEqual(decisions, HOME.decisions);
});

Deno.test("commands read the home of an earlier version", async () => {
  await using scene = await upgraded();
  const { ws } = scene;
  const verified = await run(ws, ["audit", "verify"]);
  assert.match(verified, new RegExp(`^${HOME.records} records in \\d+ files: unchanged$`, "m"));
  const { trusted, servers } = JSON.parse(await run(ws, ["trust", "--json"]));
  assert.deepEqual({ trusted, servers }, { trusted: true, servers: [] });
  const doctor = await run(ws, ["doctor"]);
  // Other lines depend on the machine.
  const files = /^(?!ok ).{5}(?:workspace|home|configuration|trust|lock|server|sign-in|key)\b/m;
  assert.doesNotMatch(doctor, files);
  assert.match(doctor, /^ok {3}sign-in docs: .*renewed automatically/m);
  // The journal now contains records of both versions.
  const started = (await run(ws, ["audit", "--json", "--kind", "start", "--limit", "1000"]))
    .trimEnd().split("\n").map((line) => JSON.parse(line).tool);
  for (const { args: { tool } } of HOME.calls) {
    if (tool !== undefined) assert.ok(started.includes(tool), `no record of ${tool}`);
  }
  assert.match(await run(ws, ["audit", "verify"]), /: unchanged$/m);
  assert.match(await run(ws, ["capability", "list"]), /^my:weather .*^my:both /ms);
  assert.match(await run(ws, ["memory", "show", "notes:list"]), /notes:list/);
  assert.match(await run(ws, ["token", "list"]), /^ci$/m);
});

Deno.test("a changed record of an earlier version is detected", async () => {
  await using scene = await upgraded();
  const { ws } = scene;
  const name = Object.keys(HOME.files).find((one) => one.includes("/journal/")) ?? "";
  const path = join(ws.root, name);
  const text = await readFile(path, "utf8");
  await writeFile(path, text.replace('"seq":1,', '"seq":1, '));
  const { code, stdout, stderr } = await runPml(ws, ["audit", "verify"], { ms: MS });
  assert.equal(code, 1, stdout + stderr);
});

Deno.test("pml logout ends a sign-in of an earlier version", async () => {
  await using scene = await upgraded();
  const { ws, site } = scene;
  await run(ws, ["logout", "docs"]);
  const { refreshToken, accessToken } = signInOf(HOME);
  assert.deepEqual(site.revoked, [refreshToken, accessToken]);
  const left = await readdir(join(ws.home, "sign_ins"));
  assert.deepEqual(left.filter((name) => name.endsWith(".json")), []);
});

Deno.test("the token of an earlier version admits its client", async () => {
  await using scene = await upgraded();
  await using served = await servePml(scene.ws);
  const ask = async (token: string) => {
    const response = await served.fetch({
      method: "POST",
      headers: { authorization: `Bearer ${token}` },
      body: JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        method: "initialize",
        params: {
          protocolVersion: "2025-11-25",
          capabilities: {},
          clientInfo: { name: "ci", version: "1" },
        },
      }),
    });
    await response.text();
    return response.status;
  };
  assert.deepEqual([await ask(HOME.token), await ask(`${HOME.token}x`)], [200, 401]);
});

Deno.test("pml init --undo removes the lines that an earlier version wrote", async () => {
  await using scene = await upgraded();
  const { ws } = scene;
  const file = ws.file(".cursor/mcp.json");
  assert.match(await readFile(file, "utf8"), /"pml"/);
  await run(ws, ["init", "--undo", "--yes"]);
  assert.doesNotMatch(await readFile(file, "utf8"), /"pml"/);
});

Deno.test("pins of an earlier version protect: changed tools and code ask", async () => {
  await using scene = await upgraded();
  const { ws } = scene;
  const changes = [["tools/notes.mjs", "List notes"], ["weather.js", "sun: true"]] as const;
  for (const [file, from] of changes) {
    const text = await readFile(ws.file(file), "utf8");
    await writeFile(ws.file(file), text.replace(from, `${from} `));
  }
  const { asked, pml: client } = await openClient(ws, "2025-11-25");
  await using pml = client;
  for (const tool of ["notes:list", "weather:get"]) {
    assert.match(lineOf(await pml.callTool("call", callOf(tool))), /^APPROVAL_STALE/);
  }
  assert.equal(asked.length, 2);
  assert.match(asked[0] ?? "", /"list" of "notes" has changed/);
});

Deno.test("an allowed tool that the earlier version never called runs without a question", async () => {
  await using scene = await upgraded();
  const { asked, pml: client } = await openClient(scene.ws, "2025-11-25");
  await using pml = client;
  assert.match(lineOf(await pml.callTool("call", callOf("notes:count"))), /^count/);
  assert.deepEqual(asked, []);
});

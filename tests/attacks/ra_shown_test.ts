/**
 * Changes between a question and its answer: PML does exactly the shown action, or nothing.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { FakeNpm } from "../kit/fake_npm.ts";
import { npmServer } from "../kit/npm_server.ts";
import { runPml, runPmlOnTerminal, type TerminalInput } from "../kit/run.ts";
import { makeWorkspace, type Workspace } from "../kit/workspace.ts";
import { answerOf } from "./questions.ts";
import { codeOf, endWell } from "./oracles.ts";
import { makeScene, type Scene } from "./stage.ts";

const MS = 60_000;
const WRITE = { name: "filesystem__write_file", arguments: { path: "made.txt", content: "made" } };
const APPROVE = "Approve exactly this call?";

/** Starts a client that cannot ask, and one call that waits for `pml approve`. */
async function waiting(): Promise<Scene> {
  const pml = { version: 1, permissions: { allow: ["filesystem:read_file"] } };
  const scene = await makeScene({ pml, capabilities: {} });
  assert.equal(codeOf(await answerOf(scene.pml, WRITE)), "APPROVAL_REQUIRED");
  return scene;
}

/** Answers the question in another terminal meanwhile. */
function elsewhere(ws: Workspace, key: string): () => Promise<void> {
  return async () => {
    const { stdout } = await runPmlOnTerminal(ws, ["approve"], { typed: [[APPROVE, key]] });
    assert.match(stdout, /Approved once|Refused/);
  };
}

Deno.test("a no at one terminal applies although another one answered yes before", async () => {
  await using scene = await waiting();
  const { ws, pml } = scene;
  const { stdout } = await runPmlOnTerminal(ws, ["approve"], {
    typed: [[APPROVE, elsewhere(ws, "y")], ["", "n"]],
  });
  assert.match(stdout, /Refused/);
  assert.equal(codeOf(await answerOf(pml, WRITE)), "APPROVAL_REQUIRED");
  assert.ok(!(await readdir(ws.path)).includes("made.txt"));
  await endWell(ws, pml);
});

Deno.test("an always to a question that was refused at another terminal writes no rule", async () => {
  await using scene = await waiting();
  const { ws, pml } = scene;
  const before = await readFile(ws.file(".pml.json"), "utf8");
  const { code, stdout } = await runPmlOnTerminal(ws, ["approve"], {
    typed: [[APPROVE, elsewhere(ws, "n")], ["", "a"]],
  });
  assert.equal(code, 1);
  assert.match(stdout, /APPROVAL_STALE/);
  assert.equal(await readFile(ws.file(".pml.json"), "utf8"), before);
  await endWell(ws, pml);
});

Deno.test("pml capability rename renames only the capability that it showed", async () => {
  await using ws = await makeWorkspace({
    files: { "one.ts": "return 1;", "two.ts": "return 2;" },
    pml: { version: 1, permissions: { allow: ["ours:*"] } },
  });
  const save = async (file: string) => {
    const words = ["capability", "save", "my:tool", "--code", file];
    const { code, stdout } = await runPmlOnTerminal(ws, words, {
      typed: [["Save exactly this?", "y"]],
    });
    assert.equal(code, 0, stdout);
  };
  for (const words of [["rename", "my:tool", "ours:tool"], ["delete", "my:tool"]]) {
    await save("one.ts");
    const { code, stdout } = await runPmlOnTerminal(ws, ["capability", ...words], {
      typed: [["exactly this?", () => save("two.ts")], ["", "y"]],
    });
    assert.equal(code, 1, stdout);
    assert.match(stdout, /APPROVAL_STALE/);
    const list = JSON.parse((await runPml(ws, ["capability", "list", "--json"])).stdout);
    assert.deepEqual(list.capabilities.map(({ name }: { name: string }) => name), ["my:tool"]);
  }
});

/** Returns a package with a script that writes a file with its version. */
function scripted(version: string) {
  const scripts = { postinstall: `echo ${version} > ran` };
  return { [version]: npmServer('"fine"', { scripts }) };
}

async function withScripts(npm: FakeNpm): Promise<Workspace> {
  return await makeWorkspace({
    env: { NPM_CONFIG_USERCONFIG: npm.settings },
    pml: {
      version: 1,
      permissions: { allow: ["own:*"] },
      mcpServers: { own: { command: "npx", args: ["-y", "own"] } },
    },
  });
}

Deno.test("install scripts of another version do not run after a question about the first", async () => {
  await using npm = new FakeNpm({ own: scripted("1.0.0") });
  await using ws = await withScripts(npm);
  const servers = join(ws.home, "servers");
  const again = async () => {
    await rm(servers, { recursive: true });
    npm.publish({ own: { ...scripted("1.0.0"), ...scripted("2.0.0") } });
    const other = await runPml(ws, ["install", "own", "--json"], { ms: MS });
    assert.match(other.stdout, /2\.0\.0/);
  };
  const { code, stdout } = await runPmlOnTerminal(ws, ["install", "own"], {
    ms: MS,
    typed: [["exactly these scripts?", again], ["", "y"]],
  });
  const left = await readdir(servers, { recursive: true });
  assert.ok(!left.some((path) => path.endsWith("/ran")), "nothing ran");
  assert.equal(code, 1, stdout);
  assert.match(stdout, /APPROVAL_STALE/);
});

Deno.test("install scripts that two terminals show at the same time run once", async () => {
  await using npm = new FakeNpm({ own: scripted("1.0.0") });
  await using ws = await withScripts(npm);
  const answer = (...typed: readonly TerminalInput[]) =>
    runPmlOnTerminal(ws, ["install", "own"], { ms: MS, typed });
  const SHOWN = "exactly these scripts?";
  const first = async () => assert.equal((await answer([SHOWN, "y"])).code, 0);
  const { code, stdout } = await answer([SHOWN, first], ["", "y"]);
  assert.equal(code, 1, stdout);
  assert.match(stdout, /APPROVAL_STALE/);
});

Deno.test("pml uninstall removes all files that it showed, and keeps newer ones", async () => {
  await using ws = await makeWorkspace({ pml: { version: 1 } });
  await runPml(ws, ["key", "set", "SOME_KEY", "--stdin"], { stdin: "hunter2-hunter2\n" });
  // Only this file: this command itself wrote its journal after the question.
  await writeFile(join(ws.home, "api_key"), "hunter3\n");
  for (const name of await readdir(ws.home)) {
    if (name.endsWith("_key") || name === "keys.env") continue;
    await rm(join(ws.home, name), { recursive: true });
  }
  const meanwhile = async () => {
    await writeFile(join(ws.home, "serve_token"), "token\n");
    await rm(join(ws.home, "api_key"));
  };
  const { code, stdout } = await runPmlOnTerminal(ws, ["uninstall"], {
    typed: [["for good?", meanwhile], ["", "y"]],
  });
  assert.equal(code, 0, stdout);
  assert.deepEqual(await readdir(ws.home), ["serve_token"]);
  assert.match(stdout, /Left: .*serve_token/);
});

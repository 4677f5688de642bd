/**
 * Contents of an untrusted clone: files without end, or files outside.
 *
 * @module
 */

import assert from "node:assert/strict";
import { mkdir, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { HAS_ACCOUNTS, pmlOfAccount } from "../kit/account.ts";
import type { Command } from "../kit/pml_command.ts";
import { RawStdio } from "../kit/raw_stdio.ts";
import { runPmlOnTerminal } from "../kit/run.ts";
import { waitUntil } from "../kit/wait.ts";
import type { Workspace } from "../kit/workspace.ts";
import { assertServes, codeOf, endWell, textOf } from "./oracles.ts";
import { picked, questionOf } from "./questions.ts";
import { makeAttackWorkspace } from "./stage.ts";

const ENDLESS = "/proc/self/pagemap";
const MOST_MB = 350;
const LONG_AGO = new Date("2001-01-01T00:00:00Z");
const IS_LINUX = Deno.build.os === "linux";

const MODULE = `
  export const __meta__ = { name: "mine", version: "1.0.0", tools: { run: {} } };
  export const run = () => "ran";`;

function naming(path: string): Record<string, unknown> {
  return { version: 1, private_mcps: { mine: { type: "deno", path } } };
}

/** Starts PML in a clone, and limits its memory while it answers. */
async function startBounded(ws: Workspace, env: Record<string, string> = {}): Promise<RawStdio> {
  // A repository above the home of a test would make that home part of the repository.
  const command: Command | undefined = HAS_ACCOUNTS ? [...pmlOfAccount(ws), "stdio"] : undefined;
  const pml = new RawStdio(ws, {
    // The test measures its memory.
    ownProcess: true,
    env,
    capabilities: {},
    ...command && { command },
  });
  const began = performance.now();
  let most = 0;
  const watching = new AbortController();
  const watched = waitUntil(() => {
    most = Math.max(most, residentMb(pml.pid));
    return watching.signal.aborted;
  }, 60_000);
  await pml.open();
  await pml.request("tools/list");
  watching.abort();
  await watched;
  assert.ok(performance.now() - began < 20_000, "it did not answer in time");
  assert.ok(most < MOST_MB, `it took ${most} MB`);
  return pml;
}

function residentMb(pid: number): number {
  try {
    const status = Deno.readTextFileSync(`/proc/${pid}/status`);
    return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024;
  } catch {
    return 0; // it has ended
  }
}

/** Places where a file without end replaces one that PML reads, with the result of a call. */
const PLACES: Readonly<Record<string, (ws: Workspace) => Promise<string | undefined>>> = {
  ".pml.json": async (ws) => {
    await rm(ws.file(".pml.json"));
    await symlink(ENDLESS, ws.file(".pml.json"));
    return "CONFIG_INVALID";
  },
  "a module": async (ws) => {
    await writeFile(ws.file(".pml.json"), JSON.stringify(naming(ENDLESS)));
    return undefined;
  },
  "a link for a module": async (ws) => {
    await symlink(ENDLESS, ws.file("mine.js"));
    await writeFile(ws.file(".pml.json"), JSON.stringify(naming("mine.js")));
    return undefined;
  },
  "a link for the folder of a module": async (ws) => {
    await symlink("/proc/self", ws.file("modules"));
    await writeFile(ws.file(".pml.json"), JSON.stringify(naming("modules/pagemap")));
    return undefined;
  },
  "a file above": async (ws) => {
    await symlink(ENDLESS, join(ws.root, ".pml.json"));
    await Deno.mkdir(join(ws.root, ".git"));
    return "CONFIG_INVALID";
  },
  "pml.lock": async (ws) => {
    await symlink(ENDLESS, ws.file("pml.lock"));
    return undefined;
  },
  ".mcp.json": async (ws) => {
    await symlink(ENDLESS, ws.file(".mcp.json"));
    return undefined;
  },
};

for (const [name, make] of Object.entries(PLACES)) {
  Deno.test({
    name: `a clone's file without end is not read: ${name} (GW7)`,
    ignore: !IS_LINUX,
    fn: async () => {
      await using ws = await makeAttackWorkspace({ trusted: false });
      const code = await make(ws);
      // With this variable, PML looks for a client's file that sets it.
      await using pml = await startBounded(ws, { PML_TRUST: join(ws.root, "none") });
      if (code === undefined) await assertServes(pml);
      else {
        const answer = await pml.callTool("filesystem__read_file", { path: "good.txt" });
        assert.equal(codeOf(answer), code);
      }
      const mine = await pml.callTool("call", { tool: "mine:run", arguments: {} });
      assert.notEqual(codeOf(mine), undefined, "it ran");
      assert.equal((await pml.close()).code, 0);
    },
  });
}

/** The ways in which a clone names a module outside. */
const WAYS: Readonly<Record<string, (ws: Workspace) => Promise<string>>> = {
  "an absolute path": (ws) => Promise.resolve(join(ws.root, "beside", "mine.js")),
  "a path upwards": () => Promise.resolve("../beside/mine.js"),
  "a link": async (ws) => {
    await symlink("../beside/mine.js", ws.file("mine.js"));
    return "mine.js";
  },
  "a linked folder": async (ws) => {
    await symlink(join(ws.root, "beside"), ws.file("modules"));
    return "./modules/mine.js";
  },
};

for (const [name, make] of Object.entries(WAYS)) {
  Deno.test(`a module outside is not accessed before trust, and runs after it: ${name} (GW7)`, async () => {
    await using ws = await makeAttackWorkspace({ trusted: false });
    const outside = join(ws.root, "beside", "mine.js");
    await mkdir(join(ws.root, "beside"));
    await writeFile(outside, MODULE);
    const path = await make(ws);
    await writeFile(ws.file(".pml.json"), JSON.stringify(naming(path)));
    // The time of the last access then shows the first access.
    await utimes(outside, LONG_AGO, LONG_AGO);
    await using pml = new RawStdio(ws, {
      era: "2026-07-28",
      capabilities: { elicitation: { form: {} } },
    });
    await pml.open();
    await pml.callTool("search", { query: "mine" });
    const call = { name: "call", arguments: { tool: "mine:run", arguments: {} } };
    const first = await questionOf(pml, call);
    assert.match(first.text, /code of "mine": outside the workspace/);
    assert.equal((await Deno.stat(outside)).atime?.getTime(), LONG_AGO.getTime(), "it was read");
    await first.answer(picked("No"));
    assert.equal((await Deno.stat(outside)).atime?.getTime(), LONG_AGO.getTime(), "it was read");
    assert.equal((await pml.close()).code, 0);

    const trusted = await runPmlOnTerminal(ws, ["trust"], {
      typed: [["to trust exactly this", "trust"]],
    });
    assert.equal(trusted.code, 0, trusted.stdout);
    await using again = new RawStdio(ws, {
      era: "2026-07-28",
      capabilities: { elicitation: { form: {} } },
    });
    await again.open();
    const code = await questionOf(again, call);
    assert.match(code.text, /the code of "mine" .* is new/);
    const message = await code.answer(picked("Yes"));
    assert.equal(textOf(message), "ran");
    await endWell(ws, again);
  });
}

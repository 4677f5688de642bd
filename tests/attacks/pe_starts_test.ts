import assert from "node:assert/strict";
import { symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { HAS_ACCOUNTS, pmlOfAccount } from "../kit/account.ts";
import { RawStdio } from "../kit/raw_stdio.ts";
import type { Workspace } from "../kit/workspace.ts";
import { assertRefused, plantLinks, use } from "./file_tools.ts";
import { endWell, textOf } from "./oracles.ts";
import { makeAttackWorkspace } from "./stage.ts";

/** A start of PML, and the folder that it serves: the workspace, PML's own, or none. */
type Start = readonly [
  name: string,
  make: (ws: Workspace) => Promise<{ cwd?: string; env?: Record<string, string> }>,
  serves: boolean | "elsewhere",
];

const STARTS: readonly Start[] = [
  ["a linked current folder", linkedTo((cwd) => ({ cwd })), true],
  ["a linked PML_WORKSPACE", linkedTo((path) => ({ cwd: "/tmp", env: at(path) })), true],
  ["a relative PML_WORKSPACE", (ws) => made({ cwd: ws.root, env: at("./x/../ws") }), true],
  ["a relative PML_WORKSPACE, plain", (ws) => made({ cwd: ws.root, env: at("ws") }), true],
  ["a missing workspace", (ws) => made({ env: at(join(ws.root, "none")) }), false],
  ["a file as workspace", (ws) => made({ env: at(ws.file("good.txt")) }), false],
  ["a dangling link", (ws) => made({ env: at(ws.file("dangling")) }), false],
  ["a name with a control character", () => made({ env: at("a\u0001b") }), false],
  ["the root as current folder", () => made({ cwd: "/" }), "elsewhere"],
  ["the home folder as current folder", (ws) => made({ cwd: join(ws.root, "home") }), "elsewhere"],
];

for (const [name, make, serves] of STARTS) {
  const title = `a start with ${name} ${
    serves === "elsewhere"
      ? "serves PML's own folder"
      : serves
      ? "serves the workspace"
      : "is refused"
  } (PE6)`;
  // Some workspaces contain their home, where only the account's own home counts.
  Deno.test(title, { ignore: !HAS_ACCOUNTS }, async () => {
    await using ws = await makeAttackWorkspace({ prepare: plantLinks });
    const start = await make(ws);
    await using pml = new RawStdio(ws, { command: [...pmlOfAccount(ws), "stdio"], ...start });
    await pml.open();
    if (serves === "elsewhere") {
      for (const path of ["../.pml", ws.home, ws.file("good.txt"), ws.outside, "/etc/hosts"]) {
        const answer = await use(pml, "read_file", { path });
        assertRefused(answer, { code: "PATH_OUTSIDE_WORKSPACE", what: path });
      }
      await ws.assertCanaries();
      assert.equal((await pml.close()).code, 0);
    } else if (serves) {
      for (const path of ["../outside/canary.txt", ws.outside, "to-file"]) {
        const answer = await use(pml, "read_file", { path });
        assertRefused(answer, { code: "PATH_OUTSIDE_WORKSPACE", what: path });
      }
      await endWell(ws, pml);
    } else {
      for (const path of ["good.txt", ws.file("good.txt"), ws.outside]) {
        assertRefused(await use(pml, "read_file", { path }), {
          code: "CONFIG_INVALID",
          what: path,
        });
      }
      assert.equal((await pml.close()).code, 0);
      assert.match(pml.stderr, /CONFIG_INVALID/);
    }
  });
}

function linkedTo(
  start: (path: string) => { cwd?: string; env?: Record<string, string> },
): Start[1] {
  return async (ws) => {
    const path = join(ws.root, "linked");
    await symlink(ws.path, path);
    return start(path);
  };
}

function made<T>(value: T): Promise<T> {
  return Promise.resolve(value);
}

function at(path: string): Record<string, string> {
  return { PML_WORKSPACE: path };
}

Deno.test({
  name: "a workspace that contains the PML home works, and keeps it closed (PE6)",
  ignore: !HAS_ACCOUNTS,
  fn: keepsHomeClosed,
});

async function keepsHomeClosed(): Promise<void> {
  await using ws = await makeAttackWorkspace({ prepare: plantLinks });
  const home = dirname(ws.home);
  await writeFile(join(home, "plain.txt"), "plain");
  await writeFile(join(ws.home, "config.yaml"), `workspaces: [${JSON.stringify(home)}]\n`);
  await using pml = new RawStdio(ws, { command: [...pmlOfAccount(ws), "stdio"], env: at(home) });
  await pml.open();
  assert.equal(textOf(await use(pml, "read_file", { path: "plain.txt" })), "plain");
  for (const path of [".pml", ".pml/journal", ".pml/none", "../outside/canary.txt"]) {
    const code = path.startsWith(".pml") ? "PATH_PROTECTED" : "PATH_OUTSIDE_WORKSPACE";
    assertRefused(await use(pml, "list_directory", { path }), { code, what: path });
  }
  await pml.close();
  await ws.assertCanaries();
}

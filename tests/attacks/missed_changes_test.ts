/**
 * Changes of rules that no watcher reports: links above the files are swapped, the system can watch
 * no more files, or its queue overflows. The new rules apply to a call that arrives a second later.
 *
 * @module
 */

import assert from "node:assert/strict";
import { mkdir, rename, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pmlCommand } from "../kit/pml_command.ts";
import { RawStdio, type RawStdioOptions } from "../kit/raw_stdio.ts";
import { until } from "../kit/wait.ts";
import type { Workspace } from "../kit/workspace.ts";
import { scriptScene, warmUp } from "../script_scene.ts";
import { codeOf, endWell, textOf } from "./oracles.ts";
import { makeAttackWorkspace } from "./stage.ts";

const LIST = ["filesystem__list_directory", { path: "." }] as const;
const DENY = { permissions: { deny: ["filesystem:list_directory", "s:run"] } };
/** The time after which changed rules apply, with a margin for the clocks. */
const PROMISED_MS = 1_050;

async function pause(ms = PROMISED_MS): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
}

/** Creates two folders, one with the text of a file that denies, and a link to the other one. */
async function swappable(
  folder: string,
  file: string,
  texts: readonly [string, string],
): Promise<() => Promise<void>> {
  for (const [at, name] of ["one", "two"].entries()) {
    await mkdir(join(folder, name), { recursive: true, mode: 0o700 });
    await writeFile(join(folder, name, file), texts[at] ?? "", { mode: 0o600 });
  }
  await symlink("one", join(folder, "current"));
  return async () => {
    await symlink("two", join(folder, "next"));
    await rename(join(folder, "next"), join(folder, "current"));
  };
}

async function opened(ws: Workspace, options: RawStdioOptions = {}): Promise<RawStdio> {
  const pml = new RawStdio(ws, options);
  await pml.open();
  assert.equal(codeOf(await pml.callTool(...LIST)), undefined);
  return pml;
}

/**
 * Positions of a link to a file with rules: the environment of PML, and the code of the refusal.
 */
const PLACES = {
  home: "CONFIG_INVALID",
  configuration: "PERMISSION_DENIED",
  policy: "PERMISSION_DENIED",
};

for (const [place, code] of Object.entries(PLACES)) {
  Deno.test(`a link to a folder above the ${place} that is swapped changes the rules (GX9)`, async () => {
    await using ws = await makeAttackWorkspace();
    const folder = join(ws.root, "linked");
    const file = place === "policy" ? "policy.yaml" : "config.yaml";
    const swap = await swappable(folder, file, ["{}", JSON.stringify(DENY)]);
    const env: Record<string, string> = {};
    if (place === "home") env.PML_HOME = join(folder, "current");
    if (place === "policy") env.PML_POLICY = join(folder, "current", file);
    if (place === "configuration") {
      await symlink(join(folder, "current", file), join(ws.home, file));
    }
    await using pml = await opened(ws, { env });
    await swap();
    await pause();
    assert.equal(codeOf(await pml.callTool(...LIST)), code);
    const applied = await pml.callTool("filesystem__read_file", { path: "good.txt" });
    if (place === "home") assert.match(textOf(applied), /leads to .*linked\/two.* now/);
    else assert.equal(textOf(applied), "good\n");
  });
}

/** Starts a command in a user namespace in which no inotify instance is left. */
const UNWATCHED = [
  "unshare",
  "-Ur",
  "sh",
  "-c",
  'echo 0 > /proc/sys/user/max_inotify_instances && exec "$@"',
  "sh",
] as const;

/** Whether the system has user namespaces, and a test may create one. */
const hasNamespaces = Deno.build.os === "linux" &&
  new Deno.Command(UNWATCHED[0], { args: [...UNWATCHED.slice(1), "true"] }).outputSync().success;

Deno.test({
  name: "rules that change without a watcher apply within a second (GX9)",
  ignore: !hasNamespaces,
  fn: async () => {
    await using ws = await makeAttackWorkspace();
    const command = [...UNWATCHED, ...pmlCommand(), "stdio"] as const;
    await using pml = await opened(ws, { command });
    await until(() => /Cannot watch the configuration/.test(pml.stderr));
    await writeFile(join(ws.home, "config.yaml"), JSON.stringify(DENY));
    await pause();
    assert.equal(codeOf(await pml.callTool(...LIST)), "PERMISSION_DENIED");
    await writeFile(join(ws.home, "config.yaml"), "{}");
    await pause();
    assert.equal(codeOf(await pml.callTool(...LIST)), undefined);
    const [program, ...args] = [...UNWATCHED, ...pmlCommand(), "doctor"];
    const { stdout } = await new Deno.Command(program, {
      args,
      cwd: ws.path,
      env: ws.env,
      clearEnv: true,
    }).output();
    assert.match(new TextDecoder().decode(stdout), /watching.*Cannot watch files/);
  },
});

Deno.test({
  name: "rules that change while the queue of the system overflows apply within a second (GX9)",
  ignore: Deno.build.os !== "linux",
  fn: async () => {
    await using scene = await scriptScene("2025-11-25", {
      ownProcess: true, // the test stops it
      rules: { allow: ["s:*", "filesystem:*"] },
    });
    const { ws, pml, call } = scene;
    await warmUp(scene);
    const most = Number(Deno.readTextFileSync("/proc/sys/fs/inotify/max_queued_events"));
    Deno.kill(pml.pid, "SIGSTOP");
    // The system merges equal consecutive events, so two files take turns.
    const noise = ["a", "b"].map((name) =>
      Deno.openSync(ws.file(name), { create: true, write: true })
    );
    const byte = new Uint8Array(1);
    for (let at = 0; at <= most; at++) noise[at % 2]?.writeSync(byte);
    for (const file of noise) file.close();
    const text = { version: 1, permissions: { allow: ["filesystem:*", "s:*"], deny: ["s:run"] } };
    const known = JSON.parse(Deno.readTextFileSync(ws.file(".pml.json")));
    await writeFile(ws.file(".pml.json"), JSON.stringify({ ...known, ...text }));
    Deno.kill(pml.pid, "SIGCONT");
    await pause();
    assert.equal(codeOf(await call()), "PERMISSION_DENIED");
    await endWell(ws, pml);
  },
});

import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { RawStdio } from "../kit/raw_stdio.ts";
import { waitUntil } from "../kit/wait.ts";
import { assertAftermath, endWell, journalOf, ofKind, textOf } from "./oracles.ts";
import { makeScene } from "./stage.ts";

const ALLOWED = { version: 1, permissions: { allow: ["filesystem:*", "shell:*"] } } as const;

interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly timed_out: boolean;
}

async function exec(pml: RawStdio, args: Readonly<Record<string, unknown>>): Promise<Ran> {
  const { result, error } = await pml.callTool("shell__exec", args);
  assert.equal(error, undefined);
  const { structuredContent } = result as { readonly structuredContent?: Ran };
  assert.ok(structuredContent, textOf({ result }));
  return structuredContent;
}

async function refusal(pml: RawStdio, args: Readonly<Record<string, unknown>>): Promise<string> {
  return textOf(await pml.callTool("shell__exec", args));
}

Deno.test("shell:exec runs a program in the workspace, with its arguments as argv (SP14)", async () => {
  await using scene = await makeScene({ era: "2026-07-28", pml: ALLOWED });
  const { ws, pml } = scene;
  const odd = [
    "-n",
    "--help",
    "A=b",
    "$(touch planted)",
    "`touch planted`",
    "; touch planted",
    "*",
    "a\nb",
  ];
  const { stdout } = await exec(pml, { command: "printf", args: ["%s|", ...odd] });
  assert.equal(stdout, odd.map((one) => `${one}|`).join(""));
  assert.equal((await exec(pml, { command: "pwd" })).stdout.trim(), await Deno.realPath(ws.path));
  assert.match(await refusal(pml, { command: "echo $(touch planted)" }), /match pattern/);
  assert.match(await refusal(pml, { command: "$(pwd)" }), /there is none/);
  assert.match(await refusal(pml, { command: "pwd", cwd: ".." }), /PATH_OUTSIDE_WORKSPACE/);
  assert.match(await refusal(pml, { command: "./good.txt" }), /lies in the workspace/);
  assert.match(await refusal(pml, { command: "env", env: { LD_PRELOAD: "x.so" } }), /LD_PRELOAD/);
  assert.ok(!(await readdir(ws.path)).includes("planted"));
  await endWell(ws, pml);
});

Deno.test("shell:exec shows a program none of PML's environment (SX4)", async () => {
  // In the process of the test, PML's variables are not those of its process.
  await using scene = await makeScene({ ownProcess: true, pml: ALLOWED });
  const { ws, pml } = scene;
  const { stdout } = await exec(pml, { command: "env" });
  const names = stdout.trim().split("\n").map((line) => line.split("=")[0] ?? "");
  const base = ["HOME", "LANG", "PATH", "PML_RUN", "PWD", "SHLVL", "TERM", "TZ", "_"];
  assert.deepEqual(names.filter((name) => !base.includes(name)), []);
  await endWell(ws, pml);
});

Deno.test("shell:exec asks in spite of a bare *, and nothing runs without a yes (SP14)", async () => {
  const pml = { version: 1, permissions: { allow: ["*"] } } as const;
  await using scene = await makeScene({ pml });
  const text = await refusal(scene.pml, { command: "touch", args: ["planted"] });
  assert.match(text, /APPROVAL_REQUIRED/);
  assert.ok(!(await readdir(scene.ws.path)).includes("planted"));
  await endWell(scene.ws, scene.pml);
});

Deno.test("no file tool follows a link that shell creates (PE10)", async () => {
  await using scene = await makeScene({ pml: ALLOWED });
  const { ws, pml } = scene;
  const plant = (from: string, to: string) =>
    exec(pml, { command: "ln", args: ["-sfn", from, to] });
  await plant(dirname(ws.outside), "out");
  await plant(ws.outside, "link.txt");
  for (const path of ["link.txt", "out/canary.txt", "out"]) {
    for (const tool of ["read_file", "list_directory", "write_file"]) {
      const args = { path, content: "x" };
      const { content: _, ...less } = args;
      const response = await pml.callTool(
        `filesystem__${tool}`,
        tool === "write_file" ? args : less,
      );
      assert.match(
        textOf(response),
        /PATH_OUTSIDE_WORKSPACE|is a folder|not a folder/,
        `${tool} ${path}`,
      );
      assert.ok(!JSON.stringify(response).includes(ws.canary));
    }
  }
  await endWell(ws, pml);
});

Deno.test("shell:exec reports the last line while it runs, and keeps the beginning and end of a flood (RX3)", async () => {
  await using scene = await makeScene({ pml: ALLOWED });
  const { ws, pml } = scene;
  const flood = await exec(pml, { command: "sh", args: ["-c", "seq 1 2000000"], max_bytes: 2_000 });
  assert.match(flood.stdout, /^1\n[^]*bytes left out[^]*\n2000000\n$/);
  assert.ok(flood.stdout.length < 2_200);
  await endWell(ws, pml);
});

Deno.test("shell:exec ends a fork bomb at its time limit, with all processes (RX6)", async () => {
  await using scene = await makeScene({ pml: ALLOWED });
  const { ws, pml } = scene;
  const bomb = "i=0; while [ $i -lt 200 ]; do (sleep 300; sleep 300) & i=$((i+1)); done; wait";
  const ran = await exec(pml, { command: "sh", args: ["-c", bomb], timeout_ms: 1_500 });
  assert.equal(ran.timed_out, true);
  const fled = "setsid sh -c 'sleep 300; sleep 300' >/dev/null 2>&1 & echo out";
  assert.equal((await exec(pml, { command: "sh", args: ["-c", fled] })).stdout, "out\n");
  await endWell(ws, pml);
});

Deno.test("a cancelled shell:exec leaves nothing of its program", async () => {
  await using scene = await makeScene({ pml: ALLOWED });
  const { ws, pml } = scene;
  const args = { command: "sh", args: ["-c", "echo > begun; sleep 300 & sleep 301"] };
  const { id, answer } = pml.begin("tools/call", { name: "shell__exec", arguments: args });
  answer.catch(() => {}); // a cancelled call is never answered
  const begun = async () => (await readdir(ws.path)).includes("begun");
  assert.ok(await waitUntil(begun));
  await pml.notify("notifications/cancelled", { requestId: id });
  const sleeping = async () =>
    (await pml.watch.living()).some(({ command }) => command.startsWith("sleep 30"));
  assert.ok(await waitUntil(async () => !await sleeping()), "a program is left");
  await scene.pml.close();
  await assertAftermath(ws, pml);
});

Deno.test("no process is left when PML is killed while programs run and a child is stopped (P6)", async () => {
  // The test kills it.
  await using scene = await makeScene({ ownProcess: true, pml: ALLOWED });
  const { ws, pml } = scene;
  const script = "echo > begun; setsid sleep 300 & sleep 301 & sleep 302";
  pml.begin("tools/call", {
    name: "shell__exec",
    arguments: { command: "sh", args: ["-c", script] },
  }).answer.catch(() => {});
  assert.ok(await waitUntil(async () => (await readdir(ws.path)).includes("begun")));
  const { result } = await pml.callTool("filesystem__read_file", { path: "good.txt" });
  assert.equal(textOf({ result }), await readFile(join(ws.path, "good.txt"), "utf8"));
  const tree = await pml.watch.remember(pml.pid);
  const stopped = tree.find(({ command }) => command.includes("--unstable-worker-options"));
  assert.ok(stopped);
  Deno.kill(stopped.pid, "SIGSTOP");
  await pml.kill("SIGKILL");
  await pml.watch.assertNothingLeft();
  assert.ok(await waitUntil(async () => (await readdir(join(ws.home, "sandbox"))).length === 0));
  assert.equal(ofKind(await journalOf(ws), "start").length, 2);
  await ws.assertCanaries();
});

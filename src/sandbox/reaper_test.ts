import assert from "node:assert/strict";
import { isGone } from "../../tests/fixtures/modules/yard.ts";
import { until } from "../../tests/kit/wait.ts";
import { withCommand } from "./_processes_test.ts";
import { killGroup } from "./process.ts";
import { Reaper } from "./reaper.ts";

Deno.test("Reaper kills groups and marked processes and removes folders when PML is killed", async () => {
  const root = Deno.makeTempDirSync({ prefix: "pml-reaper-" });
  const program = `
    const { Reaper } = await import(${JSON.stringify(import.meta.resolve("./reaper.ts"))});
    const reaper = new Reaper(${JSON.stringify(`${root}/left-`)});
    const start = (args, env = {}) =>
      new Deno.Command("sh", { args, env, detached: true, stdout: "null" }).spawn();
    const group = start(["-c", "sleep 320 & sleep 321"]);
    const over = start(["-c", "sleep 322"]);
    const fled = start(["-c", "sleep 323"], { PML_RUN: reaper.mark + ".1." });
    await reaper.add(group.pid);
    await reaper.add(over.pid);
    await reaper.remove(over.pid);
    Deno.mkdirSync(${
    JSON.stringify(`${root}/left-`)
  } + reaper.mark + "1/deep", { recursive: true });
    Deno.mkdirSync(${JSON.stringify(`${root}/left-other`)});
    console.log(JSON.stringify([group.pid, fled.pid, over.pid]));
    setInterval(() => {}, 1_000);`;
  const pml = new Deno.Command(Deno.execPath(), {
    args: ["eval", "--quiet", program],
    stdout: "piped",
  }).spawn();
  const reader = pml.stdout.getReader();
  const { value } = await reader.read();
  const [group, fled, over]: number[] = JSON.parse(new TextDecoder().decode(value));
  pml.kill("SIGKILL");
  await reader.cancel();
  await pml.status;
  await until(() => [group, fled].every((pid) => isGone(pid ?? 0)));
  // The folder of another machine with the same home and process id stays.
  await until(() => [...Deno.readDirSync(root)].map(({ name }) => name).join() === "left-other");
  assert.ok(!isGone(over ?? 0), "a group that was let go of is left alone");
  Deno.kill(-(over ?? 0), "SIGKILL");
  Deno.removeSync(root, { recursive: true });
});

Deno.test("Reaper does not kill a removed first group", async () => {
  const over = new Deno.Command("sleep", { args: ["330"], detached: true }).spawn();
  const reaper = new Reaper("/nowhere/none-");
  await reaper.add(over.pid);
  await reaper.remove(over.pid);
  await reaper[Symbol.asyncDispose]();
  over.kill("SIGTERM");
  assert.equal((await over.status).signal, "SIGTERM");
});

Deno.test("Reaper without a shell does not fail", async () => {
  const fail = () => {
    throw new Deno.errors.NotFound("Failed to spawn '/bin/sh'");
  };
  const reaper = new Reaper("/nowhere/none-");
  await withCommand(fail, () => reaper.add(1 << 29));
  await reaper.remove(1 << 29);
  await reaper[Symbol.asyncDispose]();
});

Deno.test("killGroup() ignores a process of another user", () => {
  const { kill } = Deno;
  const put = (value: typeof kill) => Object.defineProperty(Deno, "kill", { value });
  put(() => {
    throw new Deno.errors.PermissionDenied("EPERM: Operation not permitted");
  });
  try {
    killGroup(1 << 29);
  } finally {
    put(kill);
  }
});

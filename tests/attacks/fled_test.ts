/**
 * Processes that leave their session, group, parent and environment, below a program of a module
 * and below a server: none of them outlives PML, however PML ends, nor the server that started it.
 * A PML that hangs does not outlive its client.
 *
 * @module
 */

import assert from "node:assert/strict";
import { ERAS } from "../kit/json_rpc.ts";
import { pmlCommand } from "../kit/pml_command.ts";
import { type Process, processes } from "../kit/procwatch.ts";
import type { RawStdio } from "../kit/raw_stdio.ts";
import { waitUntil } from "../kit/wait.ts";
import { call, countOf, evil } from "./evil_servers.ts";
import { assertServes, textOf } from "./oracles.ts";
import { makeScene, type SceneOptions } from "./stage.ts";

const LINUX = Deno.build.os === "linux";
/** All processes end within this time after the end of PML. */
const GONE_MS = 8_000;
const MODES = ["EOF", "SIGTERM", "SIGKILL"] as const;

/** Processes that only their arguments identify: they have no group, no mark and no folder. */
class Fled {
  readonly #name: string = `86400.${crypto.getRandomValues(new Uint32Array(2)).join("")}`;

  /**
   * Returns a shell script that starts one and waits for it; in the same group it would be killed.
   */
  script(nth = 0): string {
    const flee = `echo > fled-${nth}; cd /; exec sleep ${this.#name}${nth}`;
    const far = `setsid -f env -i sh -c '${flee}' </dev/null >/dev/null 2>&1`;
    return `${far}; until [ -e fled-${nth} ]; do :; done`;
  }

  async living(): Promise<readonly Process[]> {
    return (await processes()).filter(({ command }) => command.startsWith(`sleep ${this.#name}`));
  }

  async assertThere(count: number): Promise<void> {
    assert.ok(await waitUntil(async () => (await this.living()).length >= count), "none fled");
  }

  async assertGone(): Promise<void> {
    const gone = await waitUntil(async () => (await this.living()).length === 0, GONE_MS);
    const left = (await this.living()).map(({ pid }) => pid);
    for (const pid of left) Deno.kill(pid, "SIGKILL");
    assert.ok(gone, `${left.length} processes outlive it`);
  }
}

/** Defines an evil server whose shell starts a detached process before it becomes the server. */
function fleeing(script: string, mode = "good"): Record<string, unknown> {
  const { command, args } = evil(mode) as { readonly command: string; readonly args: string[] };
  return { command: "sh", args: ["-c", `${script}; exec "$0" "$@"`, command, ...args] };
}

function sceneWith(server: Record<string, unknown>, more: SceneOptions = {}) {
  const allow = ["filesystem:*", "shell:*", "good:*"];
  const pml = { version: 1, permissions: { allow }, mcpServers: { good: server } };
  // Processes that leave their group are found by their parent.
  return makeScene({ ownProcess: true, pml, ...more });
}

async function end(pml: RawStdio, how: (typeof MODES)[number]): Promise<void> {
  if (how === "EOF") await pml.close();
  else await pml.kill(how);
}

function run(pml: RawStdio, script: string) {
  return pml.callTool("shell__exec", { command: "sh", args: ["-c", script] });
}

for (const [at, how] of MODES.entries()) {
  const era = ERAS[at % ERAS.length];
  Deno.test({
    name: `no detached process of a module's program or a server outlives PML's ${how} (GW15, SP5)`,
    ignore: !LINUX,
    fn: async () => {
      const fled = new Fled();
      await using scene = await sceneWith(fleeing(fled.script(1)), { era });
      const { pml } = scene;
      assert.equal((await call(pml, "good:echo")).result?.isError, undefined);
      assert.notEqual((await run(pml, fled.script(2))).result?.isError, true);
      // Another one is nested deeply, and its program is in the middle of its call.
      const deep = `setsid -f env -i sh -c "${fled.script(3).replaceAll('"', '\\"')}; sleep 300"`;
      pml.begin("tools/call", {
        name: "shell__exec",
        arguments: { command: "sh", args: ["-c", `${deep}; sleep 301`] },
      }).answer.catch(() => {}); // it never arrives
      await fled.assertThere(3);
      await end(pml, how);
      await fled.assertGone();
      await pml.watch.assertNothingLeft();
    },
  });
}

Deno.test({
  name:
    "no detached process outlives PML when its supervisors are stopped and its reaper is killed (GW15)",
  ignore: !LINUX,
  fn: async () => {
    const fled = new Fled();
    const stop = "kill -s STOP $PPID";
    await using scene = await sceneWith(fleeing(`${fled.script(1)}; ${stop}`));
    const { pml } = scene;
    await call(pml, "good:echo");
    await fled.assertThere(1);
    await pml.kill("SIGKILL");
    await fled.assertGone();
    await pml.watch.assertNothingLeft();
    // This server does not end with its input.
    await using other = await sceneWith(fleeing(fled.script(2), "stays"));
    await call(other.pml, "good:echo");
    await fled.assertThere(1);
    const tree = await other.pml.watch.remember(other.pml.pid);
    const reaper = tree.find(({ command }) => command.includes("pml-reaper"));
    Deno.kill(reaper?.pid ?? 0, "SIGKILL");
    await other.pml.kill("SIGKILL");
    await fled.assertGone();
    // The timer process of the reaper ends by itself.
    await other.pml.watch.assertNothingLeft({ withinMs: 10_000 });
  },
});

Deno.test({
  name:
    "detached processes of a server end with the server, whose exit code is reported (GW15, SP5)",
  ignore: !LINUX,
  fn: async () => {
    const fled = new Fled();
    await using scene = await sceneWith(fleeing(fled.script()));
    const { ws, pml } = scene;
    await call(pml, "good:echo");
    await fled.assertThere(1);
    const [first] = await fled.living();
    assert.match(textOf(await call(pml, "good:die")), /ended with exit code 3/);
    const isGone = async () => (await fled.living()).every(({ pid }) => pid !== first?.pid);
    assert.ok(await waitUntil(isGone, GONE_MS), "it outlives its server");
    await assertServes(pml);
    assert.equal((await call(pml, "good:echo")).result?.isError, undefined);
    assert.equal(await countOf(ws, "good", "start"), 2);
    assert.equal((await fled.living()).length, 1, "that of the second server");
    await pml.close();
    await fled.assertGone();
  },
});

/** A client in place of the test: it starts PML, with its own input, behind a shim. */
const CLIENT = `exec 3<&0 </dev/null; sh -c '"$@"; exit' shim "$@" <&3 3<&- & exec 3<&-; wait`;

Deno.test({
  name: "a PML without a sign of life is killed if its client is gone, and only then (P3, P6)",
  ignore: !LINUX,
  fn: async () => {
    const command = ["sh", "-c", CLIENT, "client", ...pmlCommand(), "stdio"] as const;
    const fled = new Fled();
    await using alone = await sceneWith(fleeing(fled.script()), { command });
    await using kept = await sceneWith(evil("good"), { command });
    const [hung, waiting] = [await pmlOf(alone.pml), await pmlOf(kept.pml)];
    const lives = async (one: Process) =>
      (await processes()).some(({ pid, started }) => pid === one.pid && started === one.started);
    try {
      for (const { pid } of [hung, waiting]) Deno.kill(pid, "SIGSTOP");
      Deno.kill(alone.pml.pid, "SIGKILL");
      assert.ok(await waitUntil(async () => !await lives(hung), 25_000), "it goes on");
      await fled.assertGone();
      await alone.pml.watch.assertNothingLeft();
      assert.ok(await lives(waiting), "its client lives");
      Deno.kill(waiting.pid, "SIGCONT");
      await assertServes(kept.pml);
    } finally {
      for (const one of [hung, waiting]) if (await lives(one)) Deno.kill(one.pid, "SIGKILL");
    }
  },
});

/** Finds PML behind the client and the shim. */
async function pmlOf(pml: RawStdio): Promise<Process> {
  await call(pml, "good:echo");
  const tree = await pml.watch.remember(pml.pid);
  const found = tree.find(({ command }) => / stdio$/.test(command) && !/ -c /.test(command));
  assert.ok(found !== undefined && found.pid > 0);
  return found;
}

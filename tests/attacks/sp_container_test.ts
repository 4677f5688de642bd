/**
 * Servers that are containers: a container runs below a daemon, and still ends with its server, in
 * whatever way the server or PML ends.
 *
 * @module
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { FakeDocker } from "../kit/fake_docker.ts";
import { ERAS } from "../kit/json_rpc.ts";
import { processes } from "../kit/procwatch.ts";
import { waitUntil } from "../kit/wait.ts";
import { call, evil } from "./evil_servers.ts";
import { textOf } from "./oracles.ts";
import { makeScene, type SceneOptions } from "./stage.ts";

const POSIX = Deno.build.os !== "windows";
const GONE_MS = 8_000;
const MODES = ["EOF", "SIGTERM", "SIGKILL"] as const;

interface How {
  /** The behaviour of the server. */
  readonly mode?: string;
  readonly command?: string;
  readonly before?: readonly string[];
  /** The wrapper of the command: `env`, or a shell with the command as one line. */
  readonly by?: readonly string[];
  readonly options?: readonly string[];
}

/** Defines a server in a container of one image. */
function inContainer(
  { host }: FakeDocker,
  { mode = "stays", command = "docker", before = ["run"], options = ["--rm"], by }: How = {},
): Record<string, unknown> {
  const inner = evil(mode) as { readonly command: string; readonly args: readonly string[] };
  const args = [...before, "-i", ...options, "image", inner.command, ...inner.args];
  if (by === undefined) return { command, args, env: { DOCKER_HOST: host } };
  const [wrapper = "", ...flags] = by;
  const isEnv = flags.length === 0;
  const words = [...(isEnv ? [`DOCKER_HOST=${host}`] : []), command, ...args];
  const line = isEnv ? words : [words.map((word) => `"${word}"`).join(" ")];
  return { command: wrapper, args: [...flags, ...line], env: isEnv ? {} : { DOCKER_HOST: host } };
}

function sceneOf(
  docker: FakeDocker,
  servers: Readonly<Record<string, unknown>>,
  more: SceneOptions = {},
) {
  const allow = ["filesystem:*", ...Object.keys(servers).map((name) => `${name}:*`)];
  return makeScene({
    // The test kills some of them.
    ownProcess: true,
    pml: { version: 1, permissions: { allow }, mcpServers: servers },
    env: { PATH: `${docker.bin}:${Deno.env.get("PATH")}` },
    ...more,
  });
}

async function running(docker: FakeDocker, context?: string): Promise<readonly string[]> {
  return Object.keys(await docker.containers("running", context));
}

for (const how of MODES) {
  for (const [at, mode] of ["stays", "good"].entries()) {
    const era = ERAS[at % ERAS.length];
    Deno.test({
      name: `the container of a server that ${
        mode === "good" ? "ends" : "does not end"
      } with its input ends with PML's ${how} (GW15, SP5)`,
      ignore: !POSIX,
      fn: async () => {
        const docker = await FakeDocker.make();
        const before = ["--debug", "--context", "far", "container", "run"];
        await using scene = await sceneOf(docker, {
          removed: inContainer(docker, { mode, options: ["--rm", "--name", "x"] }),
          kept: inContainer(docker, { mode, options: ["--label", "mine"] }),
          far: inContainer(docker, { mode, command: join(docker.bin, "podman"), before }),
        }, { era });
        const { pml } = scene;
        const other = await docker.runOther();
        for (const name of ["removed", "kept", "far"]) {
          const answer = await call(pml, `${name}:echo`);
          assert.equal(answer.result?.isError, undefined, textOf(answer));
        }
        assert.equal((await running(docker)).length, 3);
        assert.equal((await running(docker, "far")).length, 1);
        if (how === "EOF") assert.equal((await pml.close()).code, 0);
        else await pml.kill(how);
        const isOver = async () =>
          (await running(docker)).join() === other && (await running(docker, "far")).length === 0;
        assert.ok(await waitUntil(isOver, GONE_MS), "it outlives PML");
        const exited = Object.values(await docker.containers("exited"));
        assert.equal(exited.length, 1, "one that is not to be removed is there still");
        assert.match(exited.join(), /^(?=.*\bmine )(?=.*\bpml=)/);
        await pml.watch.assertNothingLeft({ withinMs: GONE_MS });
      },
    });
  }
}

for (const [at, how] of MODES.entries()) {
  Deno.test({
    name: `the container of a server behind env or a shell ends with PML's ${how} (SP5)`,
    ignore: !POSIX,
    fn: async () => {
      const docker = await FakeDocker.make();
      await using scene = await sceneOf(docker, {
        env: inContainer(docker, { by: ["env"] }),
        shell: inContainer(docker, { by: ["sh", "-c"] }),
        // A login profile may set another PATH.
        login: inContainer(docker, {
          by: ["env", "bash", "-lc"],
          command: join(docker.bin, "podman"),
          options: ["--label", "mine"],
        }),
      }, { era: ERAS[at % ERAS.length] });
      const { pml } = scene;
      for (const name of ["env", "shell", "login"]) {
        const answer = await call(pml, `${name}:echo`);
        assert.equal(answer.result?.isError, undefined, textOf(answer));
      }
      assert.equal((await running(docker)).length, 3);
      if (how === "EOF") assert.equal((await pml.close()).code, 0);
      else await pml.kill(how);
      const isOver = async () => (await running(docker)).length === 0;
      assert.ok(await waitUntil(isOver, GONE_MS), "it outlives PML");
      assert.match(
        Object.values(await docker.containers("exited")).join(),
        /^mine pml=|^pml=\S+ mine/,
      );
      await pml.watch.assertNothingLeft({ withinMs: GONE_MS });
    },
  });
}

Deno.test({
  name:
    "of two servers with the same image each ends its own container, after a death and when idle (SP5)",
  ignore: !POSIX,
  fn: async () => {
    const docker = await FakeDocker.make();
    const [one, two] = [inContainer(docker), inContainer(docker)];
    await using scene = await sceneOf(docker, { one, two }, { limits: { idle_ms: 4_000 } });
    const { pml } = scene;
    await call(pml, "one:echo");
    const [first = ""] = await running(docker);
    await call(pml, "two:echo");
    assert.equal((await running(docker)).length, 2);
    // The id of a container is that of the program that requested it.
    Deno.kill(Number(first), "SIGKILL");
    const isGone = async () => !(await running(docker)).includes(first);
    assert.ok(await waitUntil(isGone, GONE_MS), "it outlives its server");
    assert.equal((await call(pml, "one:echo")).result?.isError, undefined);
    assert.equal((await call(pml, "two:echo")).result?.isError, undefined);
    const isIdle = async () => (await running(docker)).length === 0;
    assert.ok(await waitUntil(isIdle, 4_000 + GONE_MS), "it outlives its idle server");
    assert.deepEqual(await docker.containers("exited"), {});
    assert.equal((await pml.close()).code, 0);
    await pml.watch.assertNothingLeft({ withinMs: GONE_MS });
  },
});

Deno.test({
  name: "a daemon that hangs delays neither the end of PML nor its waiting calls (SP5)",
  ignore: !POSIX,
  fn: async () => {
    const docker = await FakeDocker.make();
    await using scene = await sceneOf(docker, { one: inContainer(docker) });
    const { pml } = scene;
    await call(pml, "one:echo");
    await docker.hang();
    const { code, ms } = await pml.close();
    assert.equal(code, 0);
    assert.ok(ms < 8_000, `${ms} ms`);
    const waits = async () =>
      (await processes()).some(({ command }) => command.includes(docker.bin));
    assert.ok(await waitUntil(async () => !await waits(), 20_000), "it waits for ever");
  },
});

/** A docker that records the address of its daemon, and runs the image as a command. */
const NOTING = `#!/bin/sh
[ "$1" = run ] || exit 0
while [ "$1" != image ]; do shift; done
shift
echo "$DOCKER_HOST $DOCKER_CONTEXT $DOCKER_CONFIG $XDG_RUNTIME_DIR" >"$(dirname "$0")/ledger"
exec "$@"
`;

Deno.test({
  name: "docker uses the user's daemon, and none that a file of the workspace names",
  ignore: !POSIX,
  fn: async () => {
    const bin = await Deno.makeTempDir();
    await Deno.writeTextFile(join(bin, "docker"), NOTING, { mode: 0o755 });
    const { command, args } = evil("good") as {
      readonly command: string;
      readonly args: readonly string[];
    };
    const server = { command: "docker", args: ["run", "-i", "--rm", "image", command, ...args] };
    const own = { DOCKER_CONTEXT: "far", DOCKER_CONFIG: "/config", XDG_RUNTIME_DIR: "/run/me" };
    for (const isOfFile of [false, true]) {
      const entry = { command: "pml", env: { DOCKER_HOST: "tcp://evil" } };
      await using scene = await makeScene({
        pml: { version: 1, permissions: { allow: ["s:*"] }, mcpServers: { s: server } },
        env: { ...own, PATH: `${bin}:${Deno.env.get("PATH")}`, DOCKER_HOST: "tcp://evil" },
        ...isOfFile && { files: { ".mcp.json": JSON.stringify({ mcpServers: { pml: entry } }) } },
      });
      const answer = await call(scene.pml, "s:echo");
      assert.equal(answer.result?.isError, undefined, textOf(answer));
      const ledger = await Deno.readTextFile(join(bin, "ledger"));
      assert.equal(ledger, `${isOfFile ? "" : "tcp://evil"} far /config /run/me\n`);
      assert.equal((await scene.pml.close()).code, 0);
    }
    await Deno.remove(bin, { recursive: true });
  },
});

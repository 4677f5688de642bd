/**
 * The supervisor that `pml stdio` starts after its greeting, for the first program of a server.
 *
 * @module
 */

import assert from "node:assert/strict";
import { denoCommand } from "./kit/pml_command.ts";
import { RawStdio } from "./kit/raw_stdio.ts";
import { until } from "./kit/wait.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

/** Only the children of this process are counted. */
const OWN_PROCESS = { ownProcess: true } as const;

const [command, ...args] = denoCommand("bench/floor/server.ts");
const LINUX = { ignore: Deno.build.os !== "linux" };

async function workspaceOf(mcpServers: Record<string, unknown>): Promise<Workspace> {
  return await makeWorkspace({
    pml: { version: 1, permissions: { allow: ["plain:*"] }, mcpServers },
  });
}

/** Returns the process ids of the supervisors that a PML started. */
function keepersOf(pid: number): readonly number[] {
  const children = textOf(`/proc/${pid}/task/${pid}/children`).match(/\d+/g) ?? [];
  return children.filter((child) => textOf(`/proc/${child}/cmdline`).includes("pml-keeper"))
    .map(Number);
}

function textOf(path: string): string {
  try {
    return Deno.readTextFileSync(path);
  } catch {
    return ""; // the process has ended
  }
}

Deno.test("the first server uses the waiting supervisor", LINUX, async () => {
  await using ws = await workspaceOf({ plain: { command, args } });
  await using pml = new RawStdio(ws, OWN_PROCESS);
  await pml.open();
  await pml.request("tools/list");
  await until(() => keepersOf(pml.pid).length === 1);
  const keepers = keepersOf(pml.pid);
  const call = { tool: "plain:echo", arguments: { text: "hello" } };
  assert.match(JSON.stringify(await pml.callTool("call", call)), /hello/);
  assert.deepEqual(keepersOf(pml.pid), keepers);
  await pml.close();
});

Deno.test("a waiting supervisor ends with a PML that is killed", LINUX, async () => {
  await using ws = await workspaceOf({ plain: { command, args } });
  await using pml = new RawStdio(ws, OWN_PROCESS);
  await pml.open();
  await pml.request("tools/list");
  await until(() => keepersOf(pml.pid).length === 1);
  const [keeper] = keepersOf(pml.pid);
  await pml.kill("SIGKILL");
  await until(() => !textOf(`/proc/${keeper}/cmdline`).includes("pml-keeper"));
});

Deno.test("no supervisor waits where no server is a program that may run", LINUX, async () => {
  await using ws = await workspaceOf({});
  await using pml = new RawStdio(ws, OWN_PROCESS);
  await pml.open();
  const message = await pml.callTool("search", { query: "read a file" });
  assert.match(JSON.stringify(message), /filesystem/);
  assert.deepEqual(keepersOf(pml.pid), []);
  await pml.close();
});

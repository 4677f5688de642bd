/**
 * Notifications that a client sends just before it or PML ends.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import process from "node:process";
import { extensionScene, NOTES } from "./extension_scene.ts";
import { WAYS } from "./kit/raw_stdio.ts";
import { until } from "./kit/wait.ts";
import type { Workspace } from "./kit/workspace.ts";

const COUNT = 9;

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Returns the methods of the notifications that the server received. */
async function heardBy(ws: Workspace): Promise<readonly string[]> {
  const text = await readFile(ws.file("heard.txt"), "utf8").catch(() => "");
  return text.split("\n").filter((line) => line !== "");
}

for (const { era, door, on } of WAYS) {
  Deno.test(`notifications that a client sends before it disconnects, and PML ends, reach the server, ${on}`, async () => {
    await using scene = await extensionScene(era, {
      servers: { notes: ["--ledger", NOTES] },
      rules: { allow: ["notes:*"] },
      limits: { idle_ms: 1_000 },
      door,
    });
    const { pml, ws } = scene;
    // The server has to be started again.
    const pid = Number(await readFile(ws.file("pid.txt"), "utf8"));
    await until(() => !isAlive(pid));
    const methods = Array.from({ length: COUNT }, (_, at) => `notifications/notes/n${at}`);
    for (const method of methods) await pml.notify(method, { a: 1 });
    // Over HTTP each is its own request, which the client would abort at its end.
    await pml.request("ping", {});
    assert.equal((await pml.close()).code, 0);
    const heard = await heardBy(ws);
    assert.deepEqual(door === "http" ? heard.toSorted() : heard, methods, pml.stderr);
  });
}

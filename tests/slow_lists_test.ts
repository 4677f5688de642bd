/**
 * Lists with a server that is slow to start: cached items are returned at once, the rest follows
 * with a notification, and is stored for the next process. The server answers when the test allows
 * it, and the limits are far beyond the time of a test, so a list that waits never comes.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { finishLists } from "../src/cli/_stdio.ts";
import { textOf } from "./attacks/oracles.ts";
import { makeScene, type Scene, type SceneOptions } from "./attacks/stage.ts";
import { gatedServer } from "./kit/gated_server.ts";
import type { Message } from "./kit/json_rpc.ts";
import { RawStdio, WAYS } from "./kit/raw_stdio.ts";
import { until } from "./kit/wait.ts";
import type { Workspace } from "./kit/workspace.ts";

const LONG_MS = 600_000;
const LATER = ["prompts/list", "resources/list", "resources/templates/list"];

async function sceneOf(
  exposure: string,
  { firstListMs = LONG_MS, ...options }: SceneOptions & { readonly firstListMs?: number } = {},
): Promise<Scene> {
  return await makeScene({
    ...options,
    pml: {
      version: 1,
      permissions: { allow: ["slow:*", "slow:@prompts", "slow:@resources"] },
      mcpServers: { slow: gatedServer("slow") },
      gateway: { tools_exposure: exposure },
    },
    limits: { first_list_ms: firstListMs, start_ms: LONG_MS },
  });
}

const open = (ws: Workspace) => writeFile(ws.file("slow.gate"), "");

async function askedOf(ws: Workspace): Promise<readonly string[]> {
  const text = await readFile(ws.file("slow.ledger"), "utf8").catch(() => "");
  return text.split("\n").filter((line) => line !== "");
}

/** Returns the names in a list, and how long a client may cache it. */
async function namesIn(pml: RawStdio, method: string) {
  const { result = {}, error } = await pml.request(method, {});
  assert.equal(error, undefined);
  const [items = []] = Object.values(result).filter((one) =>
    Array.isArray(one)
  ) as unknown as Record<string, unknown>[][];
  return { names: items.map(({ name }) => String(name)), ttlMs: result.ttlMs };
}

const isOfServer = (name: string) => /^(?:slow__|a$|x$)/.test(name);

async function ofServer(pml: RawStdio, method: string): Promise<readonly string[]> {
  return (await namesIn(pml, method)).names.filter(isOfServer);
}

function isChange(what: string) {
  return ({ method }: Message) => method === `notifications/${what}/list_changed`;
}

for (const { door, era, on } of WAYS) {
  Deno.test(`a server that does not start delays no list but the tools of full_proxy (${on})`, async () => {
    await using scene = await sceneOf("meta_only", { door, era });
    const { ws, pml } = scene;
    if (era === "2026-07-28") {
      const notifications = { promptsListChanged: true, resourcesListChanged: true };
      pml.begin("subscriptions/listen", { notifications }).answer.catch(() => {});
    }
    const tools = await namesIn(pml, "tools/list");
    assert.ok(tools.names.includes("search"));
    if (era === "2026-07-28") assert.ok(Number(tools.ttlMs) > 0, "no server changes this list");
    for (const method of LATER) {
      const { names, ttlMs } = await namesIn(pml, method);
      assert.deepEqual(names.filter(isOfServer), [], method);
      assert.equal(ttlMs, era === "2026-07-28" ? 0 : undefined, method);
    }
    assert.deepEqual(pml.messages.filter(isChange("prompts")), []);
    await open(ws);
    await until(() => pml.messages.some(isChange("prompts")));
    await until(() => pml.messages.some(isChange("resources")));
    await until(async () => (await ofServer(pml, "resources/templates/list")).length > 0);
    assert.deepEqual(await ofServer(pml, "prompts/list"), ["slow__hello"]);
    for (const method of LATER) {
      const { ttlMs } = await namesIn(pml, method);
      assert.equal(Number(ttlMs ?? 0) > 0, era === "2026-07-28", method);
    }
  });
}

Deno.test("with full_proxy, tools/list waits for a server that was never listed, other lists do not", async () => {
  await using scene = await sceneOf("full_proxy");
  const { ws, pml } = scene;
  const tools = ofServer(pml, "tools/list");
  assert.deepEqual(await ofServer(pml, "prompts/list"), []);
  await open(ws);
  assert.deepEqual(await tools, ["slow__go"]);
});

Deno.test("limits.first_list_ms sets how long tools/list waits, and its list is not cached until it is complete", async () => {
  await using scene = await sceneOf("full_proxy", { firstListMs: 0, era: "2026-07-28" });
  const { ws, pml } = scene;
  pml.begin("subscriptions/listen", { notifications: { toolsListChanged: true } })
    .answer.catch(() => {});
  const first = await namesIn(pml, "tools/list");
  assert.deepEqual([first.names.filter(isOfServer), first.ttlMs], [[], 0]);
  await open(ws);
  await until(async () => (await ofServer(pml, "tools/list")).length > 0);
  assert.ok(pml.messages.some(isChange("tools")));
  await until(async () => Number((await namesIn(pml, "tools/list")).ttlMs) > 0);
});

Deno.test("a list of a slow server is stored after the client has disconnected, and the next process has it at once", async () => {
  // PML ends with its client.
  await using scene = await sceneOf("meta_only", { ownProcess: true });
  const { ws, pml } = scene;
  // The client disconnects after the request.
  pml.begin("prompts/list", {}).answer.catch(() => {});
  const ended = pml.close();
  await until(async () => (await askedOf(ws)).length > 0);
  await open(ws);
  assert.equal((await ended).code, 0);
  assert.ok((await askedOf(ws)).includes("prompts/list"));
  await Deno.remove(ws.file("slow.gate"));
  await Deno.remove(ws.file("slow.ledger"));
  await using next = new RawStdio(ws);
  await next.open();
  assert.deepEqual(await ofServer(next, "prompts/list"), ["slow__hello"]);
  assert.deepEqual(await askedOf(ws), [], "the server was started for a list that is known");
});

Deno.test("search names a server that is still starting", async () => {
  await using scene = await sceneOf("meta_only", {
    firstListMs: 0,
    door: "http",
    era: "2026-07-28",
  });
  const { ws, pml } = scene;
  const search = async (args: object) =>
    textOf(await pml.request("tools/call", { name: "search", arguments: args }));
  const starting = /still starting: (?:\w+, )*slow(?:, \w+)*\. /;
  assert.match(await search({ query: "go" }), starting);
  assert.match(await search({ server: "slow" }), starting);
  assert.doesNotMatch(await search({ server: "filesystem" }), /slow/);
  await open(ws);
  await until(async () => /slow:go/.test(await search({ server: "slow" })));
  assert.doesNotMatch(await search({ query: "go" }), /slow\. Search again/);
});

Deno.test("a client with new capabilities gets the tools of another client from a slow server", async () => {
  await using scene = await sceneOf("full_proxy");
  const { ws, pml } = scene;
  await open(ws);
  assert.deepEqual(await ofServer(pml, "tools/list"), ["slow__go"]);
  await pml.close();
  await Deno.remove(ws.file("slow.gate"));
  await writeFile(join(ws.home, "config.yaml"), "limits:\n  first_list_ms: 0\n");
  await using next = new RawStdio(ws, { capabilities: { elicitation: {} } });
  await next.open();
  assert.deepEqual(await ofServer(next, "tools/list"), ["slow__go"]);
  await open(ws);
  await until(async () => (await askedOf(ws)).filter((one) => one === "tools/list").length > 1);
  assert.deepEqual(await ofServer(next, "tools/list"), ["slow__go"]);
});

Deno.test("a signal ends PML although a server has not finished its lists", async () => {
  // A signal ends it.
  await using scene = await sceneOf("meta_only", { ownProcess: true });
  const { ws, pml } = scene;
  assert.deepEqual(await ofServer(pml, "prompts/list"), []);
  await until(async () => (await askedOf(ws)).length > 0);
  assert.equal((await pml.kill("SIGTERM")).code, 143);
  assert.deepEqual(await readdir(join(ws.home, "lists")).catch(() => []), []);
});

Deno.test("finishLists() ends with the last list, with a signal, or after its time", async () => {
  const never = { allLoaded: () => new Promise<void>(() => {}) };
  const { signal } = new AbortController();
  await finishLists({ allLoaded: () => Promise.resolve() }, { ms: LONG_MS, signal });
  await finishLists(never, { ms: 1, signal });
  const stop = new AbortController();
  const ended = finishLists(never, { ms: LONG_MS, signal: stop.signal });
  stop.abort();
  await ended;
});

/**
 * A hub that is down, faulty or one of two, against a spawned PML: approved servers still run from
 * a cache and a lock, both of which PML verifies.
 *
 * @module
 */

import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdir, readdir, readFile, rm, symlink, truncate, writeFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { connect } from "node:net";
import { createServer, type Server } from "node:tls";
import { EXPIRED_CERTIFICATE, EXPIRED_KEY, OLD_AUTHORITY } from "../kit/certificate.ts";
import { HUB } from "../kit/pml_command.ts";
import { spawnServing } from "../kit/registry_contract.ts";
import { runPml } from "../kit/run.ts";
import type { Workspace } from "../kit/workspace.ts";
import {
  before,
  cachedCode,
  callOnce,
  callWithReply,
  goModule,
  hashOf,
  openHub,
  refreshLists,
  userWorkspace,
  within,
} from "./hub_scene.ts";
import { assertServes } from "./oracles.ts";

const OFFLINE = /^REGISTRY_OFFLINE: /;

Deno.test("RG8: with its hub killed used servers still run, others are reported, and the hub is found again", async () => {
  await using scene = await openHub({ ownProcess: true });
  const { hub } = scene;
  await scene.publish("1.0.0", { fqdn: "weather" });
  await using ws = await userWorkspace(hub.url);
  await within(ws, async (pml) => {
    assert.equal((await callWithReply(pml)).said, "acme 1.0.0");
    Deno.kill(hub.serving.pid, "SIGKILL");
    assert.match((await callWithReply(pml, "weather:go")).said, OFFLINE);
    assert.deepEqual(await callWithReply(pml), { asked: undefined, said: "acme 1.0.0" });
    await assertServes(pml);
  });
  assert.deepEqual(await callOnce(ws), { asked: undefined, said: "acme 1.0.0" });
  assert.match(await refreshLists(ws), /Cannot reach the registry/);
  await using fresh = await userWorkspace(hub.url);
  assert.match((await callOnce(fresh)).said, OFFLINE);
  const serve = [...HUB, "serve", "--port", `${hub.serving.port}`] as const;
  await using _again = await spawnServing(hub.ws, [...serve, "--json"]);
  assert.equal((await callOnce(fresh)).said, "acme 1.0.0");
  assert.equal((await callOnce(ws, "weather:go")).said, "weather 1.0.0");
});

Deno.test("RG8: a faulty registry is asked at most three times, and never about pinned servers", async () => {
  await using scene = await openHub();
  const { proxy } = scene;
  await using used = await userWorkspace(proxy.url);
  assert.equal((await callOnce(used)).said, "acme 1.0.0");
  for (
    const fault of [{ status: 500 }, { status: 429 }, { drop: true }] as const
  ) {
    await using ws = await userWorkspace(proxy.url);
    proxy.fault("*", fault);
    proxy.asked.length = 0;
    assert.match((await callOnce(ws)).said, OFFLINE);
    // The platform itself retries once after a broken connection.
    assert.ok(proxy.asked.length <= ("drop" in fault ? 6 : 3), `${proxy.paths}`);
    proxy.asked.length = 0;
    assert.deepEqual(await callOnce(used), { asked: undefined, said: "acme 1.0.0" });
    assert.deepEqual(proxy.paths, [], "what is known was asked for");
    assert.match(await refreshLists(used), /Cannot reach the registry/);
    assert.deepEqual(await callOnce(used), { asked: undefined, said: "acme 1.0.0" });
    proxy.fault("*", { ...fault, times: 1 });
    assert.equal((await callOnce(ws)).said, "acme 1.0.0");
  }
});

Deno.test("RG8: a hub with an expired certificate is not used as a registry", async () => {
  await using scene = await openHub();
  const server = createServer({ cert: EXPIRED_CERTIFICATE, key: EXPIRED_KEY }, (socket) => {
    const behind = connect(scene.hub.serving.port, "127.0.0.1");
    socket.pipe(behind).pipe(socket);
    for (const end of [socket, behind]) end.on("error", () => {}); // the other end has closed
  });
  server.on("tlsClientError", () => {});
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  await using _ended = { [Symbol.asyncDispose]: () => closed(server) };
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
  await using ws = await userWorkspace(url, { files: { "old.pem": OLD_AUTHORITY } });
  await within(
    ws,
    async (pml) =>
      assert.match((await callWithReply(pml)).said, /^REGISTRY_OFFLINE: .*certificate/),
    // Deno reads this variable at its start.
    { env: { DENO_CERT: ws.file("old.pem") }, ownProcess: true },
  );
});

async function closed(server: Server): Promise<void> {
  server.close();
  await once(server, "close");
}

/** Damages a file of the cache, in different ways. */
const DAMAGES: readonly ((file: string) => Promise<void>)[] = [
  (file) => writeFile(file, "\n", { flag: "a" }),
  (file) => truncate(file, 40),
  (file) => truncate(file, 0),
  (file) => writeFile(file, goModule("1.0.0", { said: "evil" }).code ?? ""),
  async (file) => {
    await writeFile(`${file}.evil`, goModule("1.0.0", { said: "evil" }).code ?? "");
    await rm(file);
    await symlink(`${file}.evil`, file);
  },
  async (file) => {
    await rm(file);
    await symlink("/dev/zero", file);
  },
];

async function damage(ws: Workspace, how: (file: string) => Promise<void>): Promise<void> {
  const folder = join(ws.home, "cache");
  for (const name of await readdir(folder)) {
    if (/\.(code|entry)$/.test(name)) await how(join(folder, name));
  }
}

Deno.test("RG9: a damaged cache is ignored: PML fetches the file again, or reports it", async () => {
  await using scene = await openHub();
  const { proxy } = scene;
  await using stack = new AsyncDisposableStack();
  const damaged = await Promise.all(DAMAGES.map(async (how, at) => {
    const ws = stack.use(await userWorkspace(proxy.url));
    assert.equal((await callOnce(ws)).said, "acme 1.0.0");
    await damage(ws, how);
    assert.deepEqual(await callOnce(ws), { asked: undefined, said: "acme 1.0.0" }, `${at}`);
    await damage(ws, how);
    return ws;
  }));
  await proxy.stop();
  const away = damaged.map((ws) =>
    within(ws, async (pml) => {
      assert.match((await callWithReply(pml)).said, OFFLINE);
      await assertServes(pml);
    })
  );
  await Promise.all(away);
});

Deno.test("RG9: code that is damaged while PML runs does not run", async () => {
  await using scene = await openHub();
  const { proxy } = scene;
  await using ws = await userWorkspace(proxy.url);
  await within(ws, async (pml) => {
    assert.equal((await callWithReply(pml)).said, "acme 1.0.0");
    const [file = ""] = await cachedCode(ws);
    await writeFile(file, goModule("1.0.0", { said: "evil" }).code ?? "");
    assert.equal((await callWithReply(pml)).said, "acme 1.0.0");
    assert.equal((await cachedCode(ws)).length, 1);
    // No file can replace a folder.
    await rm(file);
    await mkdir(file);
    await writeFile(join(file, "x"), "x");
    assert.match((await callWithReply(pml)).said, /^[A-Z_]+: .*not a regular file/);
    await rm(file, { recursive: true });
    await writeFile(file, goModule("1.0.0", { said: "evil" }).code ?? "");
    await proxy.stop();
    assert.match((await callWithReply(pml)).said, OFFLINE);
    await assertServes(pml);
  });
});

Deno.test("RG10: an invalid lock, edited by hand or by a merge, is neither used in part nor replaced", async () => {
  await using scene = await openHub();
  await using ws = await userWorkspace(scene.hub.url);
  assert.equal((await callOnce(ws)).said, "acme 1.0.0");
  const lock = await readFile(ws.file("pml.lock"), "utf8");
  const twice = lock.replace('"acme": {', '"acme": {}, "acme": {');
  const merged = lock.replace(
    /( *"version": "1.0.0",?)\n/,
    '<<<<<<< HEAD\n$1\n=======\n"version": "2.0.0"\n>>>>>>> other\n',
  );
  const broken = [merged, twice, lock.slice(0, -20), lock.replace('"sha256-', '"md5-'), "[]", ""];
  for (const text of broken) {
    await writeFile(ws.file("pml.lock"), text);
    const { asked, said } = await callOnce(ws);
    assert.deepEqual([asked, said.slice(0, 15)], [undefined, "CONFIG_INVALID:"], text);
    assert.match(said, /pml\.lock/);
    assert.equal(await readFile(ws.file("pml.lock"), "utf8"), text);
    assert.notEqual((await runPml(ws, ["lock", "--check"])).code, 0);
  }
  const { servers } = JSON.parse(lock);
  await writeFile(ws.file("pml.lock"), lock.replace(servers.acme.integrity, hashOf("x")));
  const { asked, said } = await callOnce(ws, "acme:go", "No");
  assert.match(asked ?? said, /integrity: was "sha256-[0-9a-f]{64}", is /);
  await writeFile(ws.file("pml.lock"), lock);
  assert.deepEqual(await callOnce(ws), { asked: undefined, said: "acme 1.0.0" });
});

Deno.test("RG10: four simultaneous processes that pin keep all pins", async () => {
  await using scene = await openHub();
  const names = Array.from({ length: 16 }, (_, at) => `fleet:t${at}`);
  for (const fqdn of names) await scene.publish("1.0.0", { fqdn });
  await using ws = await userWorkspace(scene.hub.url, {
    pml: { permissions: { allow: ["fleet:*"] } },
  });
  const use = (first: number) =>
    within(ws, async (pml) => {
      for (const name of names.filter((_, at) => at % 4 === first)) {
        const { said } = await callWithReply(pml, name);
        assert.equal(said, `${name} 1.0.0`);
      }
    });
  await Promise.all([0, 1, 2, 3].map(use));
  const { servers } = JSON.parse(await readFile(ws.file("pml.lock"), "utf8"));
  assert.deepEqual(Object.keys(servers).sort(), [...names].sort());
  assert.equal((await runPml(ws, ["lock", "--check"])).code, 0);
});

Deno.test("RG11: the first of two hubs wins, and the second gets no name of it, even when it is down", async () => {
  await using own = await openHub();
  await using foreign = await openHub();
  await own.publish("1.1.0", { said: "ours" });
  await foreign.publish("9.0.0", { said: "evil" });
  await foreign.publish("1.0.0", { fqdn: "weather" });
  await foreign.publish("1.0.0", { fqdn: "mine", said: "evil" });
  await using open = await before(foreign.hub);
  const registries = `${own.proxy.url} ${open.url}`;
  const mine = { private_mcps: { mine: { type: "deno", path: "mine.js" } } };
  await using ws = await userWorkspace(registries, {
    files: { "mine.js": goModule("1.0.0", { fqdn: "mine" }).code ?? "" },
    pml: { ...mine, permissions: { allow: ["*", "mine:*"] } },
  });
  assert.equal((await callOnce(ws, "mine:go")).said, "mine 1.0.0");
  assert.equal((await callOnce(ws)).said, "ours");
  const toldOf = (name: string) => open.paths.filter((path) => path.includes(name));
  assert.deepEqual(toldOf("acme"), []);
  assert.equal((await callOnce(ws, "weather:go")).said, "weather 1.0.0");
  await own.proxy.stop();
  assert.equal((await callOnce(ws)).said, "ours");
  await rm(join(ws.home, "cache"), { recursive: true });
  assert.match((await callOnce(ws)).said, OFFLINE);
  await using fresh = await userWorkspace(registries);
  assert.match((await callOnce(fresh)).said, OFFLINE);
  assert.deepEqual([...toldOf("acme"), ...toldOf("mine")], []);
  await own.proxy.start();
  // A lock that names the other hub as the source.
  const lock = await readFile(ws.file("pml.lock"), "utf8");
  await writeFile(ws.file("pml.lock"), lock.replaceAll(own.proxy.url, open.url));
  const { asked, said } = await callOnce(ws, "acme:go", "No");
  assert.match(asked ?? said, /source: was /);
  assert.match(said, /answered no/);
});

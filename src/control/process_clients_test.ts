import assert from "node:assert/strict";
import { chown, symlink } from "node:fs/promises";
import { createServer } from "node:net";
import { once } from "node:events";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { listenPrivately } from "../transport/attach/private_socket.ts";
import { until } from "../../tests/kit/wait.ts";
import type { ProcessState } from "./api.ts";
import { ControlConnection } from "./control_connection.ts";
import { ProcessClients } from "./process_clients.ts";
import {
  type ProcessEntry,
  processFolder,
  readEntries,
  socketOf,
  writeEntry,
} from "./process_folder.ts";

const HAS_SOCKETS = Deno.build.os !== "windows";

/** Creates a PML home. */
async function home() {
  const path = await Deno.makeTempDir();
  await Deno.chmod(path, 0o700);
  return { path, [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }) };
}

function entryOf(at: string, id: string, more: Partial<ProcessEntry> = {}): ProcessEntry {
  return {
    id,
    pid: Deno.pid,
    startedAt: Date.now(),
    command: "stdio",
    workspace: "/ws",
    version: "0",
    host: Deno.hostname(),
    socket: socketOf(at, id),
    ...more,
  };
}

function stateOf({ host: _, ...entry }: ProcessEntry): ProcessState {
  const none = { clients: [], servers: [], questions: [], running: [], problems: [] };
  return { ...entry, isPaused: false, ...none };
}

/** Listens as a PML whose state is that of an entry. */
async function pretend(at: string, entry: ProcessEntry, state = stateOf(entry)) {
  writeEntry(at, entry);
  const sockets: Duplex[] = [];
  const server = await listenPrivately(socketOf(at, entry.id), (socket) => {
    sockets.push(socket);
    new ControlConnection(socket, {
      serve: (method) =>
        Promise.resolve(JSON.parse(JSON.stringify(method === "state" ? state : {}))),
      onNotification: () => {},
      onEnd: () => {},
    });
  });
  return {
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      server?.close();
      if (server !== undefined) await once(server, "close");
    },
  };
}

async function look(at: string) {
  const clients = new ProcessClients(at, { onState() {}, onCall() {}, onEnd() {} });
  await clients.readFolder();
  return clients;
}

Deno.test({
  name: "a socket that others may open, or a link in its place, is not used",
  ignore: !HAS_SOCKETS,
  async fn() {
    await using at = await home();
    const entry = entryOf(at.path, "a".repeat(16));
    await using _ = await pretend(at.path, entry);
    const socket = socketOf(at.path, entry.id);
    await Deno.chmod(socket, 0o666);
    {
      await using clients = await look(at.path);
      assert.deepEqual(clients.states, []);
      assert.equal(clients.hidden.length, 1);
    }
    await Deno.chmod(socket, 0o600);
    {
      await using clients = await look(at.path);
      assert.equal(clients.states.length, 1);
    }
    const linked = entryOf(at.path, "b".repeat(16));
    writeEntry(at.path, linked);
    await symlink(socket, socketOf(at.path, linked.id));
    await using clients = await look(at.path);
    assert.deepEqual(clients.states.map(({ id }) => id), [entry.id]);
    assert.deepEqual(clients.hidden.map(({ id }) => id), [linked.id]);
  },
});

Deno.test({
  name: "a socket of another user is not used",
  ignore: !HAS_SOCKETS || Deno.uid() !== 0,
  async fn() {
    await using at = await home();
    const entry = entryOf(at.path, "a".repeat(16));
    await using _ = await pretend(at.path, entry);
    await chown(socketOf(at.path, entry.id), 12_345, 12_345);
    await using clients = await look(at.path);
    assert.deepEqual([clients.states.length, clients.hidden.length], [0, 1]);
  },
});

Deno.test({
  name: "a folder that others may write to is not read",
  ignore: !HAS_SOCKETS,
  async fn() {
    await using at = await home();
    writeEntry(at.path, entryOf(at.path, "a".repeat(16)));
    assert.equal((await readEntries(at.path)).length, 1);
    await Deno.chmod(processFolder(at.path), 0o777);
    assert.deepEqual(await readEntries(at.path), []);
  },
});

Deno.test("invalid description files are ignored, and their socket paths are not used", async () => {
  await using at = await home();
  const entry = { ...entryOf(at.path, "a".repeat(16)), socket: "/somewhere/else" };
  writeEntry(at.path, entry);
  const folder = processFolder(at.path);
  await Deno.writeTextFile(join(folder, `${"b".repeat(16)}.json`), "{");
  await Deno.writeTextFile(join(folder, `${"c".repeat(16)}.json`), '{"pid":-1,"startedAt":1}');
  await Deno.writeTextFile(join(folder, "..json"), JSON.stringify(entry));
  await Deno.writeTextFile(join(folder, `${"d".repeat(16)}.json`), "x".repeat(70_000));
  const entries = await readEntries(at.path);
  assert.deepEqual(entries.map(({ socket }) => socket), [socketOf(at.path, entry.id)]);
});

Deno.test("a process of another machine with the same home is known, and never removed", async () => {
  await using at = await home();
  const [id, other] = ["a".repeat(16), "b".repeat(16)];
  writeEntry(at.path, entryOf(at.path, id, { host: "elsewhere", pid: 4_000_000 }));
  writeEntry(at.path, entryOf(at.path, other, { host: "elsewhere", startedAt: 1 }));
  await using clients = await look(at.path);
  assert.deepEqual(clients.hidden.map((one) => one.id), [id]);
  const files = await Array.fromAsync(Deno.readDir(processFolder(at.path)));
  assert.equal(files.length, 2);
});

Deno.test("files that a killed process left are removed after a minute", async () => {
  await using at = await home();
  writeEntry(at.path, entryOf(at.path, "a".repeat(16)));
  const folder = processFolder(at.path);
  const names = ["b".repeat(16), `${"c".repeat(16)}.json.1234.tmp`];
  for (const name of names) {
    await Deno.writeTextFile(join(folder, name), "");
    await readEntries(at.path);
    assert.ok((await Deno.stat(join(folder, name))).isFile);
    await Deno.utime(join(folder, name), 1, 1);
  }
  await readEntries(at.path);
  const rest = await Array.fromAsync(Deno.readDir(folder));
  assert.deepEqual(rest.map(({ name }) => name), [`${"a".repeat(16)}.json`]);
});

Deno.test("a description is removed if its process is gone, or another one has its number", async () => {
  await using at = await home();
  const child = new Deno.Command(Deno.execPath(), { args: ["--version"], stdout: "null" }).spawn();
  await child.status;
  // No process has this number.
  writeEntry(at.path, entryOf(at.path, "a".repeat(16), { pid: child.pid }));
  // This process has it, but does not listen.
  writeEntry(at.path, entryOf(at.path, "b".repeat(16)));
  // It was written before the machine was started.
  writeEntry(at.path, entryOf(at.path, "c".repeat(16), { startedAt: 1 }));
  await using clients = await look(at.path);
  assert.deepEqual([clients.states, clients.hidden], [[], []]);
  const rest = await Array.fromAsync(Deno.readDir(processFolder(at.path)));
  assert.deepEqual(rest.filter(({ name }) => HAS_SOCKETS || !name.startsWith("b")), []);
});

Deno.test({
  name: "a process without a socket, and one that does not answer, are shown as hidden",
  ignore: !HAS_SOCKETS,
  async fn() {
    await using at = await home();
    const entry = entryOf(at.path, "a".repeat(16), { reason: "it has no socket" });
    const { socket: _, ...rest } = entry;
    writeEntry(at.path, rest);
    const silent = entryOf(at.path, "b".repeat(16));
    writeEntry(at.path, silent);
    const sockets: Duplex[] = [];
    const server = createServer((socket) => void sockets.push(socket));
    server.listen(socketOf(at.path, silent.id));
    await once(server, "listening");
    await Deno.chmod(socketOf(at.path, silent.id), 0o600);
    await using clients = await look(at.path);
    assert.deepEqual(clients.hidden.map(({ reason }) => reason !== ""), [true, true]);
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, "close");
  },
});

Deno.test("a process that calls itself by another id is not shown", async () => {
  await using at = await home();
  const entry = entryOf(at.path, "a".repeat(16));
  await using _ = await pretend(at.path, entry, { ...stateOf(entry), id: "b".repeat(16) });
  await using clients = await look(at.path);
  assert.deepEqual([clients.states.length, clients.hidden.length], [0, 1]);
});

Deno.test("the end of a process is noticed at once", async () => {
  await using at = await home();
  const entry = entryOf(at.path, "a".repeat(16));
  const process = await pretend(at.path, entry);
  const ended: string[] = [];
  await using clients = new ProcessClients(at.path, {
    onState() {},
    onCall() {},
    onEnd: (id) => void ended.push(id),
  });
  await clients.readFolder();
  assert.equal(clients.states.length, 1);
  await process[Symbol.asyncDispose]();
  await until(() => ended.length > 0);
  assert.deepEqual([ended, clients.states], [[entry.id], []]);
  assert.equal((await clients.cancel(entry.id, "1")).done, false);
});

/**
 * Many simultaneous clients of the HTTP endpoint, and clients that neither send nor read.
 *
 * @module
 */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { objectOf } from "../../src/core/json.ts";
import { callBytes } from "../kit/call_bytes.ts";
import { DoorClient } from "../kit/door_client.ts";
import { ERAS } from "../kit/json_rpc.ts";
import { rssOf } from "../kit/procwatch.ts";
import { servePml, type TestServer } from "../kit/pml_serve.ts";
import { rawHttp } from "../kit/raw_http.ts";
import { until } from "../kit/wait.ts";
import { writeConfig } from "../script_scene.ts";
import { floodServers } from "./floods.ts";
import { journalOf, textOf } from "./oracles.ts";
import { makeAttackWorkspace } from "./stage.ts";

const UTF_8 = new TextEncoder();
/** The token of another identity. */
const OTHER = "token-of-another-0001";

async function connected({ url }: TestServer): Promise<Deno.TcpConn> {
  return await Deno.connect({ hostname: "127.0.0.1", port: Number(new URL(url).port) });
}

/** Reads until the other side closes the connection, and returns the text. */
async function drained(connection: Deno.TcpConn): Promise<string> {
  const buffer = new Uint8Array(65_536);
  let text = "";
  for (;;) {
    const read = await connection.read(buffer).catch(() => null);
    if (read === null) return text;
    text += new TextDecoder().decode(buffer.subarray(0, read));
  }
}

/** Reads a chunked response. */
async function answered(connection: Deno.TcpConn): Promise<string> {
  const buffer = new Uint8Array(1_024);
  let text = "";
  while (!/\}\r\n0\r\n\r\n$|\}$/.test(text)) {
    const read = await connection.read(buffer);
    if (read === null) return text;
    text += new TextDecoder().decode(buffer.subarray(0, read));
  }
  return text;
}

/** Returns the bytes of a call of the meta-tool. */
function callOf(
  served: Pick<TestServer, "url" | "token">,
  tool: string,
  args: object = {},
): Uint8Array {
  const call = { name: "call", arguments: { tool, arguments: args } };
  return callBytes(served, call, { more: ["Connection: close"] });
}

const READ = ["filesystem:read_file", { path: "good.txt" }] as const;

/** A connection with its data until the other side closed it. */
interface Slow {
  readonly connection: Deno.TcpConn;
  readonly closed: Promise<string>;
}

/** Opens connections that send the same data, and then stop. */
async function held(served: TestServer, count: number, sent: Uint8Array): Promise<readonly Slow[]> {
  const all: Slow[] = [];
  for (let at = 0; at < count; at++) {
    const connection = await connected(served);
    if (sent.length > 0) await connection.write(sent);
    all.push({ connection, closed: drained(connection) });
  }
  return all;
}

Deno.test("HT11: connections that send nothing, half a header or half a body are closed, and delay no other", async () => {
  await using ws = await makeAttackWorkspace();
  const token = createHash("sha256").update(OTHER).digest("hex");
  await writeConfig(ws, { identities: { other: { token } } });
  // The clients of so many connections would slow PML down in the same process.
  await using served = await servePml(ws, [], { ownProcess: true });
  const port = Number(new URL(served.url).port);
  const whole = callOf(served, ...READ);
  assert.match((await rawHttp(port, [whole])).text, /good/);
  const other = callOf({ url: served.url, token: OTHER }, ...READ);
  // The half bodies exceed the share of the other identity, and the rest exceeds the limit of
  // connections.
  const bodies = await held(served, 300, other.subarray(0, -5));
  const others = [
    ...await held(served, 300, whole.subarray(0, 60)),
    ...await held(served, 2_000, whole.subarray(0, 0)),
  ];
  const times: number[] = [];
  for (let at = 0; at < 21; at++) {
    const since = performance.now();
    assert.match((await rawHttp(port, [whole])).text, /good/);
    times.push(performance.now() - since);
  }
  const [median = 0] = times.toSorted((one, other) => one - other).slice(10);
  assert.ok(median < 100, `calls took ${times} ms`);
  const slow = [...bodies, ...others];
  let left = slow.length;
  for (const { closed } of slow) closed.then(() => left--);
  await until(() => left === 0, 60_000);
  const statuses = (await Promise.all(bodies.map(({ closed }) => closed))).map((text) =>
    /^HTTP\/1\.1 (503 [^]*incomplete|408 [^]*it took too long)/.exec(text)?.[1]?.slice(0, 3)
  );
  const late = statuses.filter((status) => status === "408").length;
  assert.deepEqual([late, statuses.filter((status) => status === "503").length], [256, 44]);
  const refused = (await journalOf(ws)).filter(({ event }) => event === "request refused");
  const told = new Set(refused.map(({ about }) => objectOf(about).status));
  assert.deepEqual([...told].filter((status) => status !== 408), [503]);
  for (const { connection } of slow) connection.close();
});

/**
 * Each of these two limits alone closes connections with too much unread data or no reads. The time
 * is longer than the pauses of a normal client on a slow machine.
 */
const LIMITS = {
  "after a time": { unread_ms: 6_000, queued_bytes: 200_000_000 },
  "when too much data waits": { unread_ms: 600_000, queued_bytes: 4_000_000 },
};

for (const [when, limits] of Object.entries(LIMITS)) {
  Deno.test(`HT15: a client that does not read its answer is disconnected ${when}`, async () => {
    const [size, deaf] = [24_000_000, 6];
    await using ws = await makeAttackWorkspace({
      limits: { ...limits, inline_bytes: 0 },
      pml: {
        version: 1,
        permissions: { allow: ["flood:*", "filesystem:*"] },
        mcpServers: floodServers(["flood"]),
      },
    });
    // The test measures the memory of PML alone.
    await using served = await servePml(ws, [], { ownProcess: true });
    const reader = await DoorClient.open(served, { era: "2026-07-28" });
    // A client that reads gets all of it.
    const call = { tool: "flood:text", arguments: { size: size / 2 } };
    const response = await reader.request("tools/call", { name: "call", arguments: call });
    assert.equal(textOf(response).length, size / 2);
    const request = callOf(served, "flood:text", { size });
    const connections = await Promise.all(Array.from({ length: deaf }, () => connected(served)));
    // Before the requests: on a slow machine the first is closed while the last is written.
    await until(async () => await openOf(served, connections) === deaf);
    await Promise.all(connections.map((one) => one.write(request)));
    const small = { tool: READ[0], arguments: READ[1] };
    assert.equal(
      textOf(await reader.request("tools/call", { name: "call", arguments: small })),
      "good\n",
    );
    await until(async () => await openOf(served, connections) === 0, 240_000);
    // The garbage collector frees aborted answers while PML serves others.
    await until(async () => {
      await reader.request("tools/call", { name: "call", arguments: small });
      return await rssOf(served.pid) < 500_000_000;
    });
    for (const connection of connections) {
      const { length: came } = await drained(connection);
      assert.ok(came < size, `${came} bytes of an answer that nobody read`);
      connection.close();
    }
  });
}

/** Counts the client connections that the server has not closed. */
async function openOf({ url }: TestServer, connections: readonly Deno.TcpConn[]): Promise<number> {
  const hex = (port: number) => port.toString(16).toUpperCase().padStart(4, "0");
  const own = `:${hex(Number(new URL(url).port))}`;
  const theirs = new Set(connections.map(({ localAddr }) => hex(localAddr.port)));
  const lines = (await Deno.readTextFile("/proc/net/tcp")).split("\n");
  return lines.map((line) => line.trim().split(/\s+/)).filter(([, local, remote, state]) =>
    local?.endsWith(own) && theirs.has(remote?.split(":")[1] ?? "") && state === "01"
  ).length;
}

for (const era of ERAS) {
  Deno.test(`HT14: equal ids of 500 simultaneous clients never mix their answers, on ${era}`, async () => {
    const files = Object.fromEntries(
      Array.from({ length: 500 }, (_, at) => [`${at}.txt`, `canary ${at}`]),
    );
    await using ws = await makeAttackWorkspace({
      files,
      limits: { concurrent_calls: 512, queued_calls: 512 },
    });
    await using served = await servePml(ws);
    const clients = await Promise.all(
      Array.from({ length: 500 }, () => DoorClient.open(served, { era })),
    );
    // Each has sent the same number of requests before.
    const told = await Promise.all(clients.map(async (client, at) => {
      const args = { tool: "filesystem:read_file", arguments: { path: `${at}.txt` } };
      const { id, ...said } = await client.request("tools/call", { name: "call", arguments: args });
      return [id, textOf(said)];
    }));
    const id = told[0]?.[0];
    assert.deepEqual(told, clients.map((_, at) => [id, `canary ${at}`]));
    await Promise.all(clients.map((one) => one[Symbol.asyncDispose]()));
  });
}

Deno.test("if all connections are idle, each one beyond limits.connections closes the oldest", async () => {
  const most = 30;
  await using ws = await makeAttackWorkspace({ limits: { connections: most } });
  await using served = await servePml(ws);
  const request = UTF_8.encode(`GET /health HTTP/1.1\r\nHost: ${new URL(served.url).host}\r\n\r\n`);
  const open: Deno.TcpConn[] = [];
  for (let at = 0; at < most + 1; at++) {
    const connection = await connected(served);
    open.push(connection);
    await connection.write(request);
    assert.match(await answered(connection), /^HTTP\/1\.1 200/);
  }
  const [oldest, ...others] = open;
  assert.equal(await drained(oldest as Deno.TcpConn), "");
  for (const connection of others) {
    await connection.write(request);
    assert.match(await answered(connection), /^HTTP\/1\.1 200/);
  }
  for (const connection of open) connection.close();
});

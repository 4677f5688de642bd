/**
 * Network accesses of a module: no host is reached, and the refusal has the reason.
 *
 * @module
 */

import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { HttpSink, TcpSink } from "../kit/sinks.ts";
import { assertHeld, attack, type Group } from "./evilmod/house.ts";

const GROUPS: readonly Group[] = [
  { group: "network", least: 16, like: /network-isolated.*host\.fetch/ },
  // Refusals in node's own words count, too.
  { group: "node_network", least: 3, like: /Requires \w+ access|ENOTFOUND|EPERM|getaddrinfo/ },
];

Deno.test("a local module is network-isolated", async (t) => {
  await using http = new HttpSink();
  await using tcp = new TcpSink();
  using udp = await datagrams();
  const modules = { evil: "probes.ts", good: "good.ts", uncaught: UNCAUGHT };
  await attack({ modules, era: "2026-07-28", stdio: { era: "2026-07-28" } }, async (house) => {
    const { ws, call } = house;
    const ports = { http: http.port, tcp: tcp.port, udp: udp.port };
    const args = { canary: ws.outside, link: "none", ...ports };
    for (const tool of ["probe", "again"] as const) {
      for (const group of GROUPS) {
        await t.step(`${tool} ${group.group}`, () => assertHeld(house, { tool, group, args }));
      }
      // Node throws this error outside of all handlers: it ends the child, or is refused in time.
      const summary = await call(`evil:${tool}`, { group: "node_datagram", ...args });
      const probe = String(summary.structured?.node_udp ?? "");
      assert.ok(summary.code === "SANDBOX_CRASHED" || /Requires|settled/.test(probe), summary.text);
    }
    const result = await call("uncaught:reach", ports);
    assert.equal(result.code, "SANDBOX_DENIED");
    assert.match(result.text, /network-isolated/);
    assert.equal((await call("good:ping")).text, "pong");
  });
  http.assertSilent();
  tcp.assertSilent();
  assert.deepEqual(udp.received, []);
});

const UNCAUGHT = `export const __meta__ = { name: "uncaught", tools: { reach: {} } };
export const reach = async ({ http }: { http: number }) =>
  await (await fetch("http://127.0.0.1:" + http)).text();
`;

interface Datagrams extends Disposable {
  readonly port: number;
  readonly received: readonly string[];
}

async function datagrams(): Promise<Datagrams> {
  const socket = createSocket("udp4");
  const received: string[] = [];
  socket.on("message", (bytes) => void received.push(bytes.toString("latin1")));
  await new Promise<void>((resolve) => void socket.bind(0, "127.0.0.1", resolve));
  return {
    port: socket.address().port,
    received,
    [Symbol.dispose]: () => void socket.close(),
  };
}

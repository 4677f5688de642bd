// deno-lint-ignore-file no-explicit-any
/**
 * The probes of the hostile module that reach for the network; each group is complete in itself.
 *
 * @module
 */

import type { Probe } from "./probes.ts";

export const NETWORK: Record<string, Probe> = {
  fetch: async ({ http }) => await (await fetch(`http://127.0.0.1:${http}/fetch`)).text(),
  fetch_abroad: async () => await (await fetch("http://example.com/")).text(),
  fetch_data: async ({ http }) =>
    await (await fetch(new Request(`http://127.0.0.1:${http}/`, { method: "POST", body: "x" })))
      .text(),
  web_socket: ({ http }) =>
    new Promise((resolve, reject) => {
      const socket = new WebSocket(`ws://127.0.0.1:${http}/socket`);
      socket.onopen = resolve;
      socket.onerror = () => reject(new Error("closed"));
    }),
  web_socket_stream: async ({ http }) =>
    await new (globalThis as any).WebSocketStream(`ws://127.0.0.1:${http}/`).opened,
  event_source: ({ http }) =>
    new Promise((resolve, reject) => {
      const source = new EventSource(`http://127.0.0.1:${http}/events`);
      source.onopen = resolve;
      source.onerror = () => reject(new Error("closed"));
    }),
  web_transport: ({ http }) => new (globalThis as any).WebTransport(`https://127.0.0.1:${http}/`),
  tcp: async ({ tcp }) => await Deno.connect({ hostname: "127.0.0.1", port: tcp }),
  tls: async ({ tcp }) => await Deno.connectTls({ hostname: "127.0.0.1", port: tcp }),
  unix: async () => await Deno.connect({ transport: "unix", path: "/run/docker.sock" } as any),
  listen: () => Deno.listen({ port: 0, hostname: "127.0.0.1" }),
  serve: () => Deno.serve({ port: 0, onListen: () => {} }, () => new Response("x")),
  udp: async ({ udp }) => {
    const socket = (Deno as any).listenDatagram({ port: 0, transport: "udp" });
    await socket.send(new Uint8Array([1]), { hostname: "127.0.0.1", port: udp, transport: "udp" });
  },
  dns: async () => await Deno.resolveDns("example.com", "A"),
  dns_server: async ({ udp }) =>
    await Deno.resolveDns("canary.example.com", "A", {
      nameServer: { ipAddr: "127.0.0.1", port: udp },
    }),
  http_client: () => Deno.createHttpClient({}),
};

// These know nothing of our words; all that counts is that they get nowhere.
export const NODE_NETWORK: Record<string, Probe> = {
  node_http: ({ http }) =>
    new Promise((resolve, reject) => {
      const { get } = (globalThis as any).process.getBuiltinModule("node:http");
      get(`http://127.0.0.1:${http}/node`, resolve).on("error", reject);
    }),
  node_net: ({ tcp }) =>
    new Promise((resolve, reject) => {
      const { connect } = (globalThis as any).process.getBuiltinModule("node:net");
      const socket = connect(tcp, "127.0.0.1", () => resolve("connected"));
      socket.on("error", reject);
    }),
  node_dns: async () =>
    await (globalThis as any).process.getBuiltinModule("node:dns").promises.lookup("example.com"),
};

// Node throws this one past everybody, so its child dies of it.
export const NODE_DATAGRAM: Record<string, Probe> = {
  node_udp: ({ udp }) =>
    new Promise((resolve, reject) => {
      const { createSocket } = (globalThis as any).process.getBuiltinModule("node:dgram");
      const socket = createSocket("udp4");
      socket.on("error", reject);
      socket.send("x", udp, "127.0.0.1", (error: any) => error ? reject(error) : resolve("sent"));
    }),
};

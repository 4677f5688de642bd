import assert from "node:assert/strict";
import { Cancellation } from "../../core/cancellation.ts";
import type { JsonObject } from "../../core/json.ts";
import { PmlError } from "../../core/errors.ts";
import { withoutClient } from "../../protocol/rpc_peer.ts";
import { DeclaredCapabilities } from "./_declared_capabilities.ts";
import { NO_CLIENTS, upstreamsHost } from "./_upstreams_host_test.ts";
import { ServerConnection } from "./connection.ts";
import type { UpstreamServer, Wire, WireEvents } from "./wire.ts";

/** Answers a message. Returns true if `initialize` is answered. */
type Answer = (message: JsonObject, send: (message: JsonObject) => void) => true | void;

/** A server in this process. `answer` receives each message, and a function that sends to PML. */
class FakeWire implements Wire {
  readonly reportsChanges = true;
  /** The methods of the messages that it got, and `answer` for answers. */
  readonly got: string[] = [];
  readonly #events: WireEvents;
  readonly #answer: Answer;

  constructor(events: WireEvents, answer: Answer) {
    this.#events = events;
    this.#answer = answer;
  }

  send(message: JsonObject): void {
    this.got.push(String(message.method ?? "answer"));
    const send = (one: JsonObject) => {
      setTimeout(() => this.#events.onMessage({ jsonrpc: "2.0", ...one }));
    };
    const isDone = this.#answer(message, send);
    if (message.method === "initialize" && isDone !== true) {
      const result = { protocolVersion: "2025-11-25", capabilities: {}, serverInfo: {} };
      send({ id: Number(message.id), result });
    }
  }

  downError(why: string): PmlError {
    return new PmlError("UPSTREAM_DOWN", why);
  }

  kill(): void {}

  close(): Promise<void> {
    return Promise.resolve();
  }
}

async function started(answer: Answer) {
  let wire: FakeWire | undefined;
  const server = { name: "s" } as UpstreamServer; // nothing else is used
  const host = upstreamsHost("/nowhere", {
    limits: { startMs: 60_000, catalogTools: 10, idleMs: 60_000, idleChildren: 8 },
    upstreamOf: () => server,
    roots: () => Promise.resolve([{ uri: "file:///work" }]),
  });
  const owner = {
    host,
    closing: new AbortController().signal,
    onNotification() {},
    onResponsive() {},
    toolOf: () => undefined,
    onConnectionEnd() {},
  };
  const declared = new DeclaredCapabilities(NO_CLIENTS, () => {});
  const open = (events: WireEvents) => wire = new FakeWire(events, answer);
  const parts = { owner, declared, isSession: false };
  const connection = await ServerConnection.start(server, open, parts);
  assert.ok(wire !== undefined);
  return { wire, connection };
}

Deno.test("a start waits until the server has the answers to its own requests", async () => {
  let asked = 0;
  const { wire, connection } = await started(({ id, method }, send) => {
    // As a server does that asks once more when it has the first answer.
    if (method === "notifications/initialized" || method === undefined && asked < 2) {
      send({ id: `asked ${++asked}`, method: "roots/list" });
    }
    if (method === "ping") send({ id: Number(id), result: {} });
  });
  await using _ = connection;
  assert.deepEqual(wire.got, [
    ...["initialize", "notifications/initialized", "ping", "answer"],
    ...["ping", "answer", "ping"],
  ]);
});

Deno.test("a start waits only briefly for a server that does not answer the ping", async () => {
  const { wire, connection } = await started(() => {});
  await using _ = connection;
  assert.deepEqual(wire.got, ["initialize", "notifications/initialized", "ping"]);
  assert.equal(connection.pending, 0);
});

Deno.test("a start ends although the server asks again and again", async () => {
  const { wire, connection } = await started(({ id, method }, send) => {
    if (method !== "ping") return;
    send({ id: `asked by ${id}`, method: "roots/list" });
    send({ id: Number(id), result: {} });
  });
  const { length } = wire.got;
  await connection[Symbol.asyncDispose]();
  assert.ok(length > 3);
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.ok(wire.got.length <= length + 1, "it goes on after the start");
});

Deno.test("an error without an id refuses the handshake with its text", async () => {
  for (const id of [{ id: null }, {}] as JsonObject[]) {
    const refused = started(({ method }, send) => {
      if (method !== "initialize") return;
      send({ ...id, error: { code: -32700, message: "license expired" } });
      return true;
    });
    await assert.rejects(refused, (error) => {
      assert.ok(error instanceof PmlError);
      assert.match(error.message, /: license expired/);
      return true;
    });
  }
});

Deno.test("an error without an id ends no request after the handshake", async () => {
  let isOver = false;
  const { connection } = await started(({ id, method }, send) => {
    if (method !== "tools/call") return;
    send({ id: null, error: { code: -32600, message: "odd" } });
    setTimeout(() => {
      isOver = true;
      send({ id: Number(id), result: { content: [] } });
    });
  });
  await using _ = connection;
  const cancellation = new Cancellation();
  await connection.request("tools/call", { name: "t" }, withoutClient(cancellation));
  assert.ok(isOver);
});

Deno.test("a cancelled call does not wait for a server that hangs to show whether it takes members", async () => {
  const { wire, connection } = await started(() => {});
  await using _ = connection;
  const { length } = wire.got;
  const cancellation = new Cancellation();
  const learning = connection.learnMembers({ members: { message: { more: 1 } }, cancellation });
  assert.deepEqual(wire.got.slice(length), ["ping", "ping"]);
  cancellation.cancel(new PmlError("CANCELLED", "over"));
  await assert.rejects(learning ?? Promise.resolve(), /over/);
});

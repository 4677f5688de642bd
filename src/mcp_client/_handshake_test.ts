import assert from "node:assert/strict";
import type { JsonObject } from "../core/json.ts";
import { PmlError } from "../core/errors.ts";
import { Connection } from "./connection.ts";
import type { Wire, WireEnds } from "./wire.ts";

/** A server in this process. `answer` receives each message, and a function that sends to PML. */
class FakeWire implements Wire {
  readonly tells = true;
  /** The methods of the messages that it got, and `answer` for answers. */
  readonly got: string[] = [];
  readonly #ends: WireEnds;
  readonly #answer: (message: JsonObject, send: (message: JsonObject) => void) => void;

  constructor(
    ends: WireEnds,
    answer: (message: JsonObject, send: (message: JsonObject) => void) => void,
  ) {
    this.#ends = ends;
    this.#answer = answer;
  }

  send(message: JsonObject): void {
    this.got.push(String(message.method ?? "answer"));
    const send = (one: JsonObject) => {
      setTimeout(() => this.#ends.received({ jsonrpc: "2.0", ...one }));
    };
    if (message.method === "initialize") {
      const result = { protocolVersion: "2025-11-25", capabilities: {}, serverInfo: {} };
      return send({ id: Number(message.id), result });
    }
    this.#answer(message, send);
  }

  down(why: string): PmlError {
    return new PmlError("UPSTREAM_DOWN", why);
  }

  kill(): void {}

  close(): Promise<void> {
    return Promise.resolve();
  }
}

async function started(answer: ConstructorParameters<typeof FakeWire>[1]) {
  let wire: FakeWire | undefined;
  const connection = await Connection.start({
    name: "s",
    open: (ends) => wire = new FakeWire(ends, answer),
    roots: () => Promise.resolve([{ uri: "file:///work" }]),
    capabilities: () => ({}),
    withoutSecrets: (message) => message,
    limits: { startMs: 60_000, catalogTools: 10 },
    home: "/nowhere",
    closing: new AbortController().signal,
    onLog: () => {},
    onNotification: () => {},
    onResponsive: () => {},
    tool: () => undefined,
    onEnd: () => {},
  });
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

Deno.test("a start waits only for a moment for a server that does not answer the ping", async () => {
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

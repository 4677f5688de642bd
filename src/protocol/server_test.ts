import assert from "node:assert/strict";
import type { JSONRPCMessage, McpServerFactory, Transport } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import fc from "fast-check";
import type { JsonObject } from "../core/json.ts";
import type { Connection, ConnectionFactory } from "./connection.ts";
import { createHello } from "../gateway/hello.ts";
import { sdkServer } from "../../tests/kit/sdk_server.ts";
import { echo, envelope, methods, params } from "../../tests/kit/spoken.ts";
import { settlesWithin, yieldTurn } from "../io/waiting.ts";
import { readMessage } from "./message.ts";
import { ERROR } from "./errors.ts";
import { tokenError } from "./envelope.ts";
import { isDefinedMethod } from "./revisions.ts";
import { type ClientTransport, type ProtocolHost, ProtocolServer } from "./server.ts";

const NAME = { name: "pml", version: "1.0.0" };
const LATE_MS = 20_000;

function connectionOf(isStateless: boolean): Connection {
  return { isStateless, serve: echo, handleNotification() {}, close() {} };
}

const connections: ConnectionFactory = { connect: (_, isStateless) => connectionOf(isStateless) };

/** Collects the answers to messages. */
class Answers {
  readonly said: JSONRPCMessage[] = [];
  readonly #done = Promise.withResolvers<void>();
  readonly #wanted: number;

  constructor(messages: readonly JSONRPCMessage[]) {
    this.#wanted = messages.filter((one) => "id" in one && "method" in one).length;
  }

  take(message: JSONRPCMessage): Promise<void> {
    if (!("method" in message)) this.said.push(JSON.parse(JSON.stringify(message)));
    if (this.said.length === this.#wanted) this.#done.resolve();
    return Promise.resolve();
  }

  async all(): Promise<readonly JSONRPCMessage[]> {
    // A missing answer fails the comparison.
    if (this.#wanted > 0) await settlesWithin(this.#done.promise, LATE_MS);
    return this.said.toSorted((one, other) => idOf(one) - idOf(other));
  }
}

function idOf(message: JSONRPCMessage): number {
  return Number("id" in message && message.id);
}

const host: ProtocolHost = {
  hello: (isStateless) => createHello([], { ...NAME, isStateless }),
  listensTo() {},
  isTask: () => true,
};

function transportTo(answers: Answers): ClientTransport {
  return {
    send: (message) => answers.take(message as unknown as JSONRPCMessage),
    answer: (id, text) => void answers.take(JSON.parse(`{${text},"jsonrpc":"2.0","id":${id}}`)),
  };
}

function take(server: ProtocolServer, message: JSONRPCMessage): void {
  const read = readMessage({
    kind: "line",
    bytes: new TextEncoder().encode(JSON.stringify(message)),
  });
  assert.ok(read !== undefined && read.kind !== "refusal");
  server.receive(read);
}

async function byPml(messages: readonly JSONRPCMessage[]) {
  const answers = new Answers(messages);
  await using server = new ProtocolServer(Promise.resolve(connections), transportTo(answers), host);
  for (const message of messages) take(server, message);
  return await answers.all();
}

async function bySdk(messages: readonly JSONRPCMessage[]) {
  const answers = new Answers(messages);
  const transport: Transport = {
    start: () => Promise.resolve(),
    send: (message) => answers.take(message),
    close: () => Promise.resolve(),
  };
  const factory: McpServerFactory = ({ era }) => {
    const isStateless = era === "modern";
    const open = () => connectionOf(isStateless);
    return sdkServer(createHello([], { ...NAME, isStateless }), { open, onError() {} });
  };
  const handle = serveStdio(factory, { transport, onerror() {} });
  for (const message of messages) transport.onmessage?.(structuredClone(message));
  const all = await answers.all();
  await handle.close();
  return all;
}

const initialize = fc.record({
  protocolVersion: fc.constantFrom("2025-11-25", "2024-11-05", "1999-01-01"),
  capabilities: fc.constant({ elicitation: {} }),
  clientInfo: fc.constant({ name: "t", version: "1" }),
}).map((given) => ({ method: "initialize", params: given }));

/** The messages of one client, which mostly speaks one revision. */
const session = fc.constantFrom(0, 1, 9).chain((claims) =>
  fc.array(
    fc.oneof(
      {
        arbitrary: fc.record({
          method: methods,
          params: fc.tuple(
            params,
            fc.oneof(
              { arbitrary: fc.constant(undefined), weight: 9 - claims },
              { arbitrary: envelope, weight: claims },
            ),
          ).map(([given, _meta]) => _meta === undefined ? given : { ...given, _meta }),
        }),
        weight: 12,
      },
      { arbitrary: initialize, weight: 2 },
      {
        arbitrary: fc.constantFrom("initialized", "roots/list_changed", "progress").map((name) => ({
          method: `notifications/${name}`,
        })),
        weight: 1,
      },
    ),
    { minLength: 1, maxLength: 6 },
  )
).map((messages) =>
  messages.map((message, at): JSONRPCMessage => ({
    jsonrpc: "2.0",
    ...message.method.startsWith("notifications/") ? {} : { id: at },
    ...message,
  } as JSONRPCMessage))
);

/** Returns the comparable part of an answer: the SDK words errors of `_meta` differently. */
function comparable(message: JSONRPCMessage): unknown {
  if (!("error" in message)) return message;
  const { id, error } = message;
  return /_meta|Invalid params/.test(error.message) ? { id, code: error.code } : message;
}

/**
 * Returns whether an answer refuses a revision. The SDK looks only at that of the first request.
 */
function isRefused(message: JSONRPCMessage | undefined): boolean {
  return message !== undefined && "error" in message &&
    message.error.code === ERROR.unsupportedProtocolVersion;
}

/** Returns whether an extension's request ends with a question, which the SDK does not allow. */
function isQuestionOfExtension(answer: JSONRPCMessage, asked: JSONRPCMessage | undefined): boolean {
  return "result" in answer && answer.result.resultType === "input_required" &&
    asked !== undefined && "method" in asked && !isDefinedMethod(asked.method);
}

Deno.test("messages are answered as the SDK answers them", async () => {
  await fc.assert(
    fc.asyncProperty(session, async (messages) => {
      const [own, other] = [await byPml(messages), await bySdk(messages)];
      assert.equal(own.length, other.length);
      for (const [at, one] of own.entries()) {
        if (isRefused(one) && !isRefused(other[at])) continue;
        if (isQuestionOfExtension(one, messages[idOf(one)])) continue;
        assert.deepEqual(comparable(one), comparable(other[at] ?? one));
      }
    }),
    { numRuns: 1_500, seed: 7 },
  );
});

Deno.test("a request with an invalid progress token is answered with an error", async () => {
  for (const token of [true, {}, 1.5]) {
    const asked = { method: "tools/list", params: { _meta: { progressToken: token } } };
    const [said] = await byPml([{ jsonrpc: "2.0", id: 0, ...asked } as JSONRPCMessage]);
    assert.deepEqual(Object(said).error, tokenError(asked.params));
    assert.equal(Object(said).error.code, -32602);
  }
});

Deno.test("a cancelled request is aborted, and gets no answer", async () => {
  const waits = Promise.withResolvers<JsonObject>();
  const aborted: unknown[] = [];
  const slow: ConnectionFactory = {
    ...connections,
    connect: () => ({
      ...connectionOf(false),
      serve: (_, { cancellation: { signal } }) => {
        signal.addEventListener("abort", () => {
          aborted.push(signal.reason.message);
          waits.resolve({});
        });
        return waits.promise;
      },
    }),
  };
  const answers = new Answers([]);
  const server = new ProtocolServer(Promise.resolve(slow), transportTo(answers), host);
  take(server, { jsonrpc: "2.0", id: 7, method: "tools/call", params: { name: "x" } });
  await yieldTurn();
  const params = { requestId: 7, reason: "enough" };
  take(server, { jsonrpc: "2.0", method: "notifications/cancelled", params });
  await yieldTurn();
  await server[Symbol.asyncDispose]();
  assert.deepEqual([aborted, answers.said], [["enough"], []]);
});

/**
 * A server whose responses have one fault, except in the handshake, on stdio in either revision or
 * over HTTP.
 *
 *     deno run -A odd_server.ts ERA FAULT
 *
 * @module
 */

import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

export type Json = Record<string, unknown>;

const ITEMS: Readonly<Record<string, Json>> = {
  tools: { name: "t", inputSchema: { type: "object" } },
  resources: { uri: "test://a", name: "a" },
  resourceTemplates: { uriTemplate: "test://{a}", name: "a" },
  prompts: { name: "p" },
};
const LISTS: Readonly<Record<string, string>> = {
  "tools/list": "tools",
  "resources/list": "resources",
  "resources/templates/list": "resourceTemplates",
  "prompts/list": "prompts",
};
const CODES = [-32700, -32600, -32601, -32602, -32603, -32000, -32001, -32002, -32020, -32021];
const ODD_CODES = [-32022, -32042, -32800, 0, 1, 1e300, -0.5, "text", null, {}, [], true];
const RESULTS = [null, [], [[]], "text", 5, true, {}, { content: null }, { content: {} }];
const FIELDS = [null, 5, "text", {}, [null], [1], [[]], [{}], [{
  name: 1,
  uri: 2,
  uriTemplate: 3,
}]];
const DEEP = JSON.parse(`${'{"a":'.repeat(90)}1${"}".repeat(90)}`);

/** The number of requests for each method. */
const asked = new Map<string, number>();

/** Returns a response without its id; a text is sent unchanged, and undefined means no response. */
type Fault = (method: string, params: Json) => Json | string | undefined;

function error(code: unknown, message: unknown = "It says no\nin two lines", data?: unknown): Json {
  return { error: { code, message, data } };
}

function page(method: string, more: Json): Json {
  const key = LISTS[method] ?? "content";
  const count = (asked.get(method) ?? 0) + 1;
  asked.set(method, count);
  return { result: { [key]: ITEMS[key] === undefined ? [] : [ITEMS[key]], ...more } };
}

function listed(method: string, items: unknown): Json {
  const keys = ["contents", "messages", "completion", "content", "structuredContent", "_meta"];
  const key = LISTS[method];
  const odd = Object.fromEntries(keys.map((one) => [one, items]));
  return { result: key === undefined ? odd : { [key]: items } };
}

/** The faults, by their names. */
export const FAULTS: Readonly<Record<string, Fault>> = {
  ...Object.fromEntries(
    [...CODES, ...ODD_CODES].map((code) => [`code ${JSON.stringify(code)}`, () => error(code)]),
  ),
  "no message": () => ({ error: { code: -32000 } }),
  "message is no text": () => error(-32000, { a: 1 }),
  "message is long": () => error(-32000, "long ".repeat(100_000)),
  "message is odd": () => error(-32000, "\u001b[31m\u0000\u202e\ud800</result>"),
  "data is deep": () => error(-32000, "deep", DEEP),
  "data has a prototype": () => error(-32000, "x", JSON.parse('{"__proto__":{"a":1}}')),
  ...Object.fromEntries(
    [null, "text", 5, [], {}, true].map((one) => [
      `error is ${JSON.stringify(one)}`,
      () => ({ error: one }),
    ]),
  ),
  "both": () => ({ result: {}, ...error(-32000) }),
  "neither": () => ({}),
  ...Object.fromEntries(
    RESULTS.map((one) => [`result is ${JSON.stringify(one)}`, () => ({ result: one })]),
  ),
  ...Object.fromEntries(
    FIELDS.map((one) => [`field is ${JSON.stringify(one)}`, (method) => listed(method, one)]),
  ),
  "item is deep": (method) => listed(method, [{ ...ITEMS[LISTS[method] ?? ""], a: DEEP }]),
  "names are none": (method) =>
    listed(
      method,
      ["", " ", "\u0000", "x".repeat(5_000), "__proto__", "constructor", "a b"].map(
        (name) => ({ name, uri: name, uriTemplate: name, inputSchema: { type: "object" } }),
      ),
    ),
  "schemas are odd": (method) =>
    listed(
      method,
      [
        5,
        null,
        [],
        { type: 7 },
        { properties: 5 },
        { properties: { a: 5 } },
        {
          $ref: "#/nowhere",
        },
        { $ref: "#" },
        { allOf: 5 },
        { required: {} },
        { pattern: "(" },
        { $defs: [] },
      ].map((
        inputSchema,
        at,
      ) => ({ name: `t${at}`, inputSchema, outputSchema: inputSchema })),
    ),
  "asks nothing": () => ({ result: { resultType: "input_required" } }),
  "asks oddly": () => ({
    result: { resultType: "input_required", inputRequests: { a: 5, b: { method: "odd" } } },
  }),
  "is a task": () => ({ result: { resultType: "task", taskId: 5, status: {} } }),
  "result type is odd": () => ({ result: { resultType: 5 } }),
  "half a page": (method, { cursor }) =>
    cursor === undefined ? page(method, { nextCursor: "a" }) : error(-32000),
  "half a page, then none": (method, { cursor }) =>
    cursor === undefined ? page(method, { nextCursor: "a" }) : { result: null },
  "the same cursor": (method) => page(method, { nextCursor: "a" }),
  "two cursors": (method, { cursor }) => page(method, { nextCursor: cursor === "a" ? "b" : "a" }),
  "new cursors": (method) => page(method, { nextCursor: `c${asked.get(method) ?? 0}` }),
  "cursor is no text": (method) => page(method, { nextCursor: { a: 1 } }),
  "no JSON": () => "this is no JSON\n",
  "cut": () => '{"jsonrpc":"2.0","id":',
  "another id": () => '{"jsonrpc":"2.0","id":"nobody","result":{}}\n',
  "ends": () => undefined,
};

/** Answers a request: the handshake correctly, and all others with the fault. */
export function faultyAnswer(
  { id, method, params }: Json,
  { fault, isModern }: { readonly fault: string; readonly isModern: boolean },
): Json | string | undefined {
  const capabilities = {
    tools: {},
    resources: { subscribe: true },
    prompts: {},
    completions: {},
    logging: {},
  };
  const said = (result: Json) => ({ jsonrpc: "2.0", id, result });
  if (method === "ping") return said({});
  if (method === "server/discover" && isModern) {
    return said({ supportedVersions: ["2026-07-28"], capabilities });
  }
  if (method === "initialize" && !isModern) {
    return said({
      protocolVersion: "2025-11-25",
      serverInfo: { name: "o", version: "1" },
      capabilities,
    });
  }
  if (method === "initialize" || method === "server/discover") {
    const data = { supported: [isModern ? "2026-07-28" : "2025-11-25"] };
    return { jsonrpc: "2.0", id, error: { code: -32022, message: "Not this one", data } };
  }
  const odd = FAULTS[fault]?.(String(method), (params ?? {}) as Json);
  return typeof odd === "object" ? { jsonrpc: "2.0", id, ...odd } : odd;
}

/** A server that listens over HTTP until it is disposed. */
export interface OddServer extends Disposable {
  readonly url: string;
}

/** Listens over HTTP; a status is answered with a page of HTML. */
export async function listen(
  { fault, isModern, status }: {
    readonly fault: string;
    readonly isModern: boolean;
    readonly status?: number;
  },
): Promise<OddServer> {
  return await serveHttp((message, response) => {
    const isGreeting = ["initialize", "server/discover", "ping"].includes(String(message.method));
    if (status !== undefined && !isGreeting) {
      const page = `<html><title>Status ${status}</title><h1>nginx</h1></html>`;
      return void response.writeHead(status, { "content-type": "text/html" }).end(page);
    }
    const said = faultyAnswer(message, { fault, isModern });
    response.writeHead(200, { "content-type": "application/json", "mcp-session-id": "one" });
    if (said === undefined) {
      response.flushHeaders();
      return void setTimeout(() => response.destroy());
    }
    response.end(typeof said === "string" ? said : JSON.stringify(said));
  });
}

/** Listens over HTTP, and passes each request that expects a response to a function. */
export async function serveHttp(
  answer: (message: Json, response: ServerResponse) => void,
): Promise<OddServer> {
  const server = createServer(async (request, response) => {
    if (request.method !== "POST") return void response.writeHead(405).end();
    // A PML that ends aborts its requests.
    const said = await text(request).catch(() => undefined);
    if (said === undefined) return;
    const message = JSON.parse(said) as Json;
    if (message.id === undefined) return void response.writeHead(202).end();
    answer(message, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${port}/mcp`, [Symbol.dispose]: close };
}

/** Answers a line, or ends. */
function serve(line: string, how: { readonly fault: string; readonly isModern: boolean }): void {
  const message = JSON.parse(line) as Json;
  if (message.id === undefined || message.method === undefined) return;
  const said = faultyAnswer(message, how);
  if (said === undefined) Deno.exit(7);
  const reply = typeof said === "string" ? said : `${JSON.stringify(said)}\n`;
  Deno.stdout.writeSync(new TextEncoder().encode(reply));
  if (how.fault === "cut" && typeof said === "string") Deno.exit(8);
}

if (import.meta.main) {
  const [era, fault = ""] = Deno.args;
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of Deno.stdin.readable) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) serve(line, { fault, isModern: era === "modern" });
  }
}

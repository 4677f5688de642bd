/**
 * A server whose messages have members that PML does not know, over stdio or HTTP, in either
 * revision. The result of each request contains the received params.
 *
 *     deno run -A members_server.ts [--modern]
 *
 * @module
 */

import process from "node:process";
import { createInterface } from "node:readline";

type Json = Record<string, unknown>;
type Send = (message: Json) => void;

/** Members that no revision knows, at the top level of params and results and within `_meta`. */
export const MORE = { "x/kept": { a: [1, null] }, later: "L" };
/** An extension that PML does not know, and a notification of it. */
export const EXTENSION = "x.test/notes";
export const TOLD = "notifications/notes/told";
/** The progress token of the server's own requests. */
export const PROGRESS_TOKEN = "of/server";
/** An experimental capability of the server. */
export const TRIAL = { "x.test/of-server": { b: [1] } };
/** The reason for which the server withdraws a request. */
export const WITHDRAWN = "no answer in time";
const META = { "x/meta": { b: 1 } };

const ASKED = {
  elicit: {
    method: "elicitation/create",
    params: { message: "Who?", requestedSchema: { type: "object", properties: {} } },
  },
  sample: {
    method: "sampling/createMessage",
    params: { messages: [{ role: "user", content: { type: "text", text: "Hi" } }], maxTokens: 5 },
  },
} as const;

const LISTS: Readonly<Record<string, Json>> = {
  "tools/list": {
    tools: ["echo", "elicit", "sample", "tell", "heard", "wait", "withdraw"]
      .map((name) => ({ name, inputSchema: { type: "object" }, ...MORE, _meta: META })),
  },
  "prompts/list": { prompts: [{ name: "greet", ...MORE, _meta: META }] },
  "resources/list": { resources: [{ uri: "test://a", name: "a", ...MORE, _meta: META }] },
  "resources/templates/list": {
    resourceTemplates: [{ uriTemplate: "test://i/{id}", name: "i", ...MORE, _meta: META }],
  },
};

const RESULTS: Readonly<Record<string, Json>> = {
  "prompts/get": { messages: [] },
  "resources/read": { contents: [{ uri: "test://a", text: "t", ...MORE, _meta: META }] },
  "completion/complete": { completion: { values: ["v"], ...MORE } },
};

/** One client of the server. */
export class MembersServer {
  readonly #isModern: boolean;
  readonly #waiting = new Map<unknown, (answer: Json) => void>();
  /** The received notifications of the extension. */
  readonly #heard: Json[] = [];
  /** The params of the received cancellations. */
  readonly #cancelled: Json[] = [];
  /** The params of `initialize`. */
  #greeting: Json | undefined;
  /** The number of calls that wait. */
  #waits = 0;
  /** The progress of the client since the last request to it. */
  #progress: Json[] = [];

  /** Takes the revision. */
  constructor(isModern: boolean) {
    this.#isModern = isModern;
  }

  /** Handles a message. Resolves when it is answered. */
  async take({ jsonrpc: _, id, method, params = {}, ...more }: Json, send: Send): Promise<void> {
    const answer = (members: Json) => send({ jsonrpc: "2.0", id, ...members, ...MORE });
    if (method === undefined) return this.#waiting.get(id)?.(more);
    if (id === undefined) {
      if (method === TOLD) this.#heard.push({ ...params as Json, next: more });
      if (method === "notifications/cancelled") this.#cancelled.push(params as Json);
      if (method === "notifications/progress") {
        const report = params as Json;
        this.#progress.push(Object.keys(more).length === 0 ? report : { ...report, next: more });
      }
      return;
    }
    const other = this.#isModern ? "initialize" : "server/discover";
    if (method === other) return answer({ error: { code: -32601, message: "Not found", ...MORE } });
    const result = await this.#result(method as string, params as Json, send);
    answer({ result: "got" in result ? { ...result, next: more } : result });
  }

  async #result(method: string, params: Json, send: Send): Promise<Json> {
    const info = { name: "members", version: "1" };
    const named = { "io.modelcontextprotocol/serverInfo": info };
    const own = { ...MORE, _meta: { ...META, ...this.#isModern && named } };
    const capabilities = {
      ...{ tools: {}, prompts: {}, resources: { subscribe: true }, completions: {} },
      ...{ extensions: { [EXTENSION]: { level: 1 } }, experimental: TRIAL },
    };
    const about = { capabilities, serverInfo: info };
    if (method === "initialize") this.#greeting = params;
    if (method === "initialize") return { protocolVersion: params.protocolVersion, ...about };
    if (method === "server/discover") return { supportedVersions: ["2026-07-28"], ...about };
    const [heard, cancelled] = [this.#heard, this.#cancelled];
    const waits = this.#waits;
    const got = { got: params };
    const seen = { ...got, heard, cancelled, waits, greeting: this.#greeting };
    if (params.name === "heard") return { content: [], ...seen };
    if (params.name === "wait") this.#waits++;
    if (params.name === "wait") return await new Promise<Json>(() => {});
    if (method !== "tools/call") return { ...LISTS[method] ?? RESULTS[method], ...own, ...got };
    const { name, inputResponses, _meta } = params;
    if (name === "tell") {
      const { progressToken } = _meta as Json;
      const told = { progressToken, progress: 1, ...own };
      send({ jsonrpc: "2.0", method: "notifications/progress", params: told, ...MORE });
      const message = { level: "error", data: "d", ...own };
      send({ jsonrpc: "2.0", method: "notifications/message", params: message, ...MORE });
      send({ jsonrpc: "2.0", method: TOLD, params: own, ...MORE });
      const changed = "notifications/prompts/list_changed";
      send({ jsonrpc: "2.0", method: changed, params: own, ...MORE });
      const updated = { uri: "test://a", ...own };
      send({ jsonrpc: "2.0", method: "notifications/resources/updated", params: updated, ...MORE });
    }
    if (name === "withdraw") {
      send({ jsonrpc: "2.0", id: "late", ...ASKED.elicit });
      await new Promise((resolve) => setTimeout(resolve, 100));
      const late = { requestId: "late", reason: WITHDRAWN };
      send({ jsonrpc: "2.0", method: "notifications/cancelled", params: late });
    }
    const asked = ASKED[name as keyof typeof ASKED];
    if (asked === undefined) return { content: [], ...own, ...got };
    const withToken = { ...META, progressToken: PROGRESS_TOKEN };
    const request = { ...asked, params: { ...asked.params, ...own, _meta: withToken } };
    this.#progress = [];
    if (!this.#isModern) {
      const { promise, resolve } = Promise.withResolvers<Json>();
      this.#waiting.set("own", resolve);
      send({ jsonrpc: "2.0", id: "own", ...request, ...MORE });
      const { result, ...next } = await promise;
      const progress = this.#progress;
      return { content: [], ...own, answer: result, answeredNext: next, progress };
    }
    return inputResponses === undefined
      ? {
        resultType: "input_required",
        inputRequests: { one: { ...request, ...MORE } },
        requestState: "s",
      }
      : { content: [], ...own, answer: (inputResponses as Json).one };
  }
}

/** Serves one client over HTTP on loopback. */
export function serveMembers(isModern: boolean) {
  const server = new MembersServer(isModern);
  const options = { hostname: "127.0.0.1", port: 0, onListen: () => {} };
  const http = Deno.serve(options, async (request) => {
    if (request.method !== "POST") return new Response(null, { status: 405 });
    const message: Json = await request.json();
    const named = request.headers.get("mcp-method");
    if (isModern && named !== message.method) return new Response(null, { status: 400 });
    const isRequest = message.id !== undefined && message.method !== undefined;
    const headers = {
      "content-type": "text/event-stream",
      ...message.method === "initialize" && { "mcp-session-id": "one" },
    };
    const body = new ReadableStream<Uint8Array>({
      async start(stream) {
        const send: Send = (one) =>
          stream.enqueue(new TextEncoder().encode(`data: ${JSON.stringify(one)}\n\n`));
        await server.take(message, send);
        stream.close();
      },
    });
    return isRequest ? new Response(body, { headers }) : new Response(null, { status: 202 });
  });
  return {
    url: `http://127.0.0.1:${http.addr.port}/mcp`,
    [Symbol.asyncDispose]: () => http.shutdown(),
  };
}

if (import.meta.main) {
  const server = new MembersServer(process.argv.includes("--modern"));
  for await (const line of createInterface({ input: process.stdin })) {
    void server.take(JSON.parse(line), (message) => console.log(JSON.stringify(message)));
  }
}

import assert from "node:assert/strict";
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";
import fc from "fast-check";
import { CLIENT_INFO } from "../../tests/kit/json_rpc.ts";
import { echo, methods, mostly, params } from "../../tests/kit/spoken.ts";
import type { JsonObject } from "../core/json.ts";
import { sdkServer } from "../gateway/_sdk_server.ts";
import type { Connection } from "../gateway/connection.ts";
import { helloOf } from "../gateway/hello.ts";
import { TextAnswer } from "./_http_answer.ts";
import { ResultTexts } from "./_result_texts.ts";
import { SessionRequests } from "./_session_requests.ts";

const REVISION = "2025-11-25";
const hello = (isModern: boolean) => helloOf([], { name: "pml", version: "1.0.0", isModern });
const SESSION = {
  "content-type": "application/json",
  "mcp-session-id": "s",
  "mcp-protocol-version": REVISION,
  accept: "application/json, text/event-stream",
};

const connection: Connection = {
  isModern: false,
  serve: echo,
  close() {},
};

function posted(headers: Record<string, string>): Request {
  return new Request("http://localhost/mcp", { method: "POST", headers });
}

/** Begins a session of the SDK. */
async function begun() {
  const transport = new WebStandardStreamableHTTPServerTransport({ sessionIdGenerator: () => "s" });
  const server = sdkServer(hello(false), { open: () => connection, onError() {} });
  await server.connect(transport);
  const params = { protocolVersion: REVISION, capabilities: {}, clientInfo: CLIENT_INFO };
  const parsedBody = { jsonrpc: "2.0", id: 0, method: "initialize", params };
  const { body } = await transport.handleRequest(posted(SESSION), { parsedBody });
  await body?.cancel();
  return { transport, server };
}

/** The messages of an answer. */
async function said(made: Response | TextAnswer): Promise<readonly unknown[]> {
  if (made instanceof TextAnswer) return [JSON.parse(made.text)];
  assert.equal(made.status, 200);
  return [...(await made.text()).matchAll(/^data: (.*)$/gm)].map(([, one = ""]) => JSON.parse(one));
}

const request = fc.record({
  method: methods,
  id: fc.constantFrom<unknown>(1, "1", 0, null, 1.5),
  beside: fc.constantFrom({}, {}, {}, {}, {}, { result: {} }, { extra: 1 }),
  params: fc.tuple(
    params,
    fc.record({
      tells: fc.constantFrom(1, 3),
      uri: fc.constant("a:b"),
      _meta: fc.record({ progressToken: mostly(7), own: fc.constant("mine") }),
    }, { requiredKeys: [] }),
  ).map(([given, more]) => JSON.parse(JSON.stringify({ ...given, ...more })) as JsonObject),
  headers: fc.record({
    "mcp-protocol-version": mostly(REVISION),
    "mcp-method": fc.constantFrom(undefined, undefined, undefined, "tools/call"),
  }),
});

Deno.test("What is served in a session without the SDK is answered as the SDK answers it", async () => {
  const [own, sdk] = [await begun(), await begun()];
  using requests = new SessionRequests({
    ...{ ...own, connection, texts: new ResultTexts(hello) },
    onError() {},
  });
  const count = { direct: 0, streams: 0 };
  await fc.assert(
    fc.asyncProperty(request, async ({ headers: more, beside, ...spoken }) => {
      const headers = Object.fromEntries(
        Object.entries({ ...SESSION, ...more }).filter(([, value]) => typeof value === "string"),
      ) as Record<string, string>;
      const body = { jsonrpc: "2.0", ...spoken, ...beside };
      const { signal } = new AbortController();
      const made = requests.answer(
        { headers, signal, web: () => posted(headers) },
        structuredClone(body),
      );
      if (made === undefined) return;
      const here = await said(await made);
      const there = await sdk.transport.handleRequest(posted(headers), { parsedBody: body });
      assert.deepEqual(here, await said(there));
      count.direct++;
      if (here.length > 1) count.streams++;
    }),
    { numRuns: 3_000, seed: 7 },
  );
  assert.ok(count.direct > 250 && count.streams > 50, JSON.stringify(count));
});

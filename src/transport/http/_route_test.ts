import assert from "node:assert/strict";
import { tokenError } from "../../protocol/envelope.ts";
import { selectRoute } from "./_route.ts";

const META = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientCapabilities": {},
};

function routed(body: unknown, headers: Readonly<Record<string, string>> = {}): string {
  const route = selectRoute({ body, headers });
  return route.kind === "refused" ? `${route.error.code}` : route.kind;
}

const request = (more: object = {}) => ({ jsonrpc: "2.0", id: 1, method: "tools/list", ...more });
const newest = (method = "tools/list", more: object = {}) =>
  request({ method, params: { ...more, _meta: META } });
const OF_LIST = { "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list" };

Deno.test("requests, answers, notifications and batches of older revisions belong to sessions", () => {
  const notification = { jsonrpc: "2.0", method: "notifications/initialized" };
  const answer = { jsonrpc: "2.0", id: 1, result: {} };
  const initialize = request({ method: "initialize" });
  for (const body of [undefined, request(), notification, answer, initialize]) {
    assert.equal(routed(body), "session");
    assert.equal(routed(body, { "mcp-protocol-version": "2025-11-25" }), "session");
  }
  assert.equal(routed([request(), notification]), "session");
});

Deno.test("a batch with an invalid message or one of the stateless revision is refused", () => {
  for (const body of [[], [1], [request(), newest()]]) assert.equal(routed(body), "-32600");
});

Deno.test("a request of the stateless revision is served if its headers repeat the body", () => {
  assert.equal(routed(newest(), OF_LIST), "request");
  assert.equal(routed(newest(), { ...OF_LIST, "mcp-protocol-version": "2025-11-25" }), "-32020");
  assert.equal(routed(newest(), { ...OF_LIST, "mcp-method": "tools/call" }), "-32020");
  assert.equal(routed(newest(), { "mcp-method": "tools/list" }), "-32020");
  assert.equal(routed(request(), OF_LIST), "-32602", "no revision in the body");
  assert.equal(routed(request({ method: "initialize" }), OF_LIST), "-32020");
  const notification = { jsonrpc: "2.0", method: "notifications/x" };
  assert.equal(routed(notification, OF_LIST), "notification");
});

Deno.test("Mcp-Name may be encoded, and must be the name that the body has", () => {
  const call = newest("tools/call", { name: "größe" });
  const named = (name?: string) =>
    routed(call, {
      ...OF_LIST,
      "mcp-method": "tools/call",
      ...name !== undefined && { "mcp-name": name },
    });
  assert.equal(named("=?base64?Z3LDtsOfZQ==?="), "request");
  for (const wrong of [undefined, "grosse", "=?base64?!?=", "=?base64?/w==?="]) {
    assert.equal(named(wrong), "-32020");
  }
});

Deno.test("an invalid progress token has the error that it has over stdio", () => {
  for (const progressToken of [true, {}, 1.5]) {
    const params = { _meta: { ...META, progressToken } };
    const route = selectRoute({ body: request({ params }), headers: OF_LIST });
    assert.equal(route.kind, "refused");
    assert.deepEqual(Object(route).error, tokenError(params));
  }
});

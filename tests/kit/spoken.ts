/**
 * Mostly valid messages of clients, and a tool that echoes them, for tests that compare two
 * servers.
 *
 * @module
 */

import fc from "fast-check";
import type { JsonObject } from "../../src/core/json.ts";
import type { RequestContext } from "../../src/protocol/connection.ts";
import { RpcError } from "../../src/protocol/errors.ts";

const META = "io.modelcontextprotocol/";

const odd = fc.constantFrom<unknown>("x", 1, null, true, {}, [], { a: 1 }, {
  form: { applyDefaults: 1 },
});
/** Returns a value that is nearly always the valid one. */
export function mostly(right: unknown): fc.Arbitrary<unknown> {
  return fc.oneof({ arbitrary: fc.constant(right), weight: 12 }, { arbitrary: odd, weight: 1 });
}

const able = fc.oneof(
  { arbitrary: fc.constant({}), weight: 3 },
  fc.record({
    elicitation: mostly({ form: {}, url: {} }),
    sampling: mostly({ tools: {} }),
    roots: mostly({ listChanged: true }),
    extensions: mostly({ "io.modelcontextprotocol/tasks": {} }),
    experimental: mostly({ own: { x: 1 } }),
  }, { requiredKeys: [] }),
);
const client = fc.record({
  name: mostly("t"),
  version: mostly("1"),
  title: mostly("T"),
  icons: mostly([{ src: "data:," }]),
}, { requiredKeys: ["name", "version"] });
/** The client's data in a request of the newest revision. */
export const envelope: fc.Arbitrary<object> = fc.record({
  [`${META}protocolVersion`]: mostly("2026-07-28"),
  [`${META}clientCapabilities`]: fc.oneof({ arbitrary: able, weight: 8 }, odd),
  [`${META}clientInfo`]: fc.oneof({ arbitrary: client, weight: 8 }, odd),
  [`${META}logLevel`]: mostly("info"),
  progressToken: fc.constantFrom<unknown>(7, "7"),
  own: fc.constant("mine"),
}, { requiredKeys: [`${META}protocolVersion`, `${META}clientCapabilities`] });
const answer = fc.record({
  resultType: fc.constantFrom("complete", "input_required", "task"),
  ttlMs: fc.constantFrom<unknown>(5, -1, 1.5, "1"),
  cacheScope: fc.constantFrom<unknown>("public", "private", "x"),
  _meta: fc.constantFrom<object>({ a: 1 }, {
    [`${META}serverInfo`]: { name: "own", version: "2" },
  }),
}, { requiredKeys: [] });
/** Params of a request: a name and arguments, and answers to questions. */
export const params: fc.Arbitrary<object> = fc.record({
  name: fc.constant("echo"),
  answer,
  fails: fc.constantFrom(-32002, -32601, -32603, 5),
  inputResponses: fc.constantFrom<unknown>(
    { a: { action: "accept" }, b: 1, c: { method: "x" } },
    1,
  ),
  requestState: fc.constantFrom<unknown>("state", 1),
}, { requiredKeys: [] });
/** Methods, usual ones and others. */
export const methods: fc.Arbitrary<string> = fc.constantFrom(
  ...["tools/list", "tools/call", "tools/call", "prompts/list", "prompts/get", "resources/read"],
  ...["resources/subscribe", "logging/setLevel", "tasks/get", "completion/complete", "ping"],
  ...["server/discover", "no/such", "tasks/update", "resources/templates/list"],
);

/** Sends the requested notifications, and returns its arguments. */
export async function echo(params: unknown, context: RequestContext): Promise<JsonObject> {
  const { id, method, meta, envelope, inputResponses, requestState: state } = context;
  const header = context.headers?.get("mcp-param-x") ?? undefined;
  const given = { id, method, _meta: meta, envelope, inputResponses, state, header };
  const { answer, fails, tells = 0 } = params as {
    answer?: object;
    fails?: number;
    tells?: number;
  };
  for (let at = 0; at < tells; at++) {
    const params = { progressToken: 7, progress: at };
    await context.notify({ method: "notifications/progress", params });
  }
  if (fails !== undefined) throw new RpcError(fails, "It fails", { why: "so" });
  return JSON.parse(JSON.stringify({ params, given, ...answer }));
}

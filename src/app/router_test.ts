import assert from "node:assert/strict";
import { type Call, type CallTool, textResult } from "../core/call.ts";
import { toolId } from "../core/tool_id.ts";
import { getToolRouting } from "../remote/routing.ts";
import { makeRouter, type Route } from "./router.ts";

function call(server: string): Call {
  return {
    id: toolId(server, "run"),
    arguments: {},
    via: "call",
    actor: "local",
    signal: new AbortController().signal,
    callId: "c1",
  };
}

function way(name: string, came: string[]): CallTool {
  return ({ id }) => {
    came.push(`${name} ${id}`);
    return Promise.resolve({ kind: "result", result: textResult(name) });
  };
}

Deno.test("call() goes where the server runs, and nowhere else", async () => {
  const came: string[] = [];
  const routes: Record<string, Route> = { a: "local", b: "cloud" };
  const router = makeRouter({
    routingOf: (server) => routes[server] ?? "local",
    local: way("local", came),
    cloud: way("cloud", came),
  });
  for (const server of ["a", "b", "c"]) await router.call(call(server));
  assert.deepEqual(came, ["local a:run", "cloud b:run", "local c:run"]);
});

Deno.test("call() keeps what the person defined local, whatever its name", async () => {
  const came: string[] = [];
  const mine = new Set(["tavily"]);
  const router = makeRouter({
    routingOf: (server) => mine.has(server) ? "local" : getToolRouting(server),
    local: way("local", came),
    cloud: way("cloud", came),
  });
  await router.call(call("tavily"));
  await router.call(call("exa"));
  assert.deepEqual(came, ["local tavily:run", "cloud exa:run"]);
});

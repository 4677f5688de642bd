/**
 * Keys for servers over HTTP: the places where they may appear, and the places where they must not.
 *
 * @module
 */

import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { type Came, event, Scripted, stream } from "../../src/servers/http/_stage_test.ts";
import { EACH_WAY } from "../kit/raw_stdio.ts";
import { assertNoLeak } from "../kit/sinks.ts";
import { type SseScript, SseServer } from "../kit/sse_server.ts";
import { call, toldCode } from "./evil_servers.ts";
import { endWell, textOf } from "./oracles.ts";
import { makeScene, type SceneOptions } from "./stage.ts";

const KEY = "key-of-the-person-1234";
const LITERAL = "literal-key-5678-of-the-file";

for (const type of ["http", "sse"] as const) {
  for (const { on, ...way } of EACH_WAY) {
    Deno.test(`a key that a server repeats appears in its results only, over ${type}, on ${on} (SX2, SX5)`, () =>
      echoed(type, way));
  }
}

async function echoed(
  type: "http" | "sse",
  way: Pick<SceneOptions, "door" | "era">,
): Promise<void> {
  await using other = new Scripted();
  const says = echoing(other.url);
  await using server = type === "http" ? new Scripted(says) : new SseServer(onStream(says));
  // Text outside of a stream is not a response, so PML does not read it.
  const odd = type === "http" ? ["garbage"] : [];
  const tools = ["login", "down", "error", "away", ...odd, "echo"];
  await using lists = new Scripted();
  const headers = { "Authorization": "Bearer ${DOCS_TOKEN}", "X-Own-Key": LITERAL };
  const pml = {
    version: 1,
    permissions: { allow: ["docs:*", "filesystem:*"] },
    mcpServers: {
      docs: { type, url: server.url, headers },
      plain: { type: "http", url: lists.url },
    },
  };
  server.tools = tools.map((name) => ({ name, inputSchema: { type: "object" } }));
  const env = { DOCS_TOKEN: KEY, PML_LOG_LEVEL: "debug" };
  await using scene = await makeScene({ ...way, pml, env });
  const { ws, pml: started } = scene;
  const wanted: Record<string, string> = {
    login: "LOGIN_REQUIRED",
    down: "UPSTREAM_DOWN",
    away: "UPSTREAM_PROTOCOL",
    garbage: "UPSTREAM_PROTOCOL",
  };
  const messages: string[] = [];
  for (const tool of tools.slice(0, -1)) {
    const response = await call(started, `docs:${tool}`);
    messages.push(JSON.stringify(response));
    if (wanted[tool] !== undefined) assert.equal(toldCode(response), wanted[tool]);
  }
  assert.match(messages[tools.indexOf("error")] ?? "", /-32000: no \[redacted\]/);
  assert.equal(textOf(await call(started, "docs:echo")), KEY, "a result is not changed");
  await call(started, "plain:t");
  await endWell(ws, started);
  for (const secret of [KEY, LITERAL]) {
    assertNoLeak(secret, {
      errors: messages.join("\n"),
      stderr: started.stderr,
      ...await files(ws.home),
    });
  }
  assert.deepEqual(other.came, []);
  const request = lists.came.map(({ headers }) => JSON.stringify([...headers])).join();
  assertNoLeak(KEY, { "another server": request });
}

Deno.test("nothing is sent to a server of an untrusted workspace", async () => {
  await using server = new Scripted();
  const headers = { Authorization: "Bearer ${DOCS_TOKEN}" };
  const pml = {
    version: 1,
    permissions: { allow: ["docs:*"] },
    mcpServers: { docs: { type: "http", url: server.url, headers } },
  };
  await using scene = await makeScene({ pml, trusted: false, env: { DOCS_TOKEN: KEY } });
  const { pml: started } = scene;
  assert.equal(toldCode(await call(started, "docs:t")), "WORKSPACE_UNTRUSTED");
  await started.callTool("search", { query: "docs" });
  await started.request("resources/list", {});
  assert.deepEqual(server.came, []);
  await started.close();
});

/** Creates a server that repeats its keys, one way for each tool. */
function echoing(away: string) {
  return ({ message: { id, method, params }, headers }: Pick<Came, "message" | "headers">) => {
    if (method !== "tools/call") return undefined;
    const { name, _meta } = params as { name: string; _meta?: { progressToken?: unknown } };
    const key = headers.get("authorization")?.split(" ")[1] ?? "";
    const forms = `${key} ${headers.get("x-own-key")} ${btoa(key)} ${
      Buffer.from(key).toString("hex")
    }`;
    const echo = { "x-echo": forms, "set-cookie": forms, "www-authenticate": `Bearer ${forms}` };
    const error = { code: -32000, message: `no ${forms}`, data: { deep: [forms] } };
    switch (name) {
      case "login":
        return new Response(forms, { status: 401, headers: echo });
      case "down":
        return new Response(forms, { status: 503, headers: echo });
      case "error":
        return Response.json({ jsonrpc: "2.0", id, error }, { headers: echo });
      case "away":
        return new Response(forms, { status: 307, headers: { ...echo, location: away } });
      case "garbage":
        return new Response(forms, { headers: { ...echo, "content-type": "text/plain" } });
    }
    const progressToken = _meta?.progressToken;
    return stream([
      event({ method: "notifications/message", params: { level: "info", data: forms } }),
      event({
        method: "notifications/progress",
        params: { progressToken, progress: 1, message: forms },
      }),
      `: ${forms}\n\nwhat ${forms}\n\ndata: ${forms}\n\n`,
      event({ id, result: { content: [{ type: "text", text: key }] } }),
    ]);
  };
}

/** Lets a server of HTTP+SSE do the same: answers on its stream, and refusals unchanged. */
function onStream(says: ReturnType<typeof echoing>): SseScript {
  return async ({ message, headers, stream: own }) => {
    const said = says({ message: message as Came["message"], headers });
    if (said === undefined || !said.ok) return said;
    const text = await said.text();
    const isEvents = said.headers.get("content-type") === "text/event-stream";
    own?.write(isEvents ? text : `data: ${text}\n\n`);
    return new Response(text, { status: 202, headers: said.headers });
  };
}

/** Reads every file below a folder. */
async function files(folder: string): Promise<Record<string, string>> {
  const texts: Record<string, string> = {};
  for (const name of await readdir(folder, { recursive: true })) {
    const path = join(folder, name);
    if ((await stat(path)).isFile()) texts[name] = await readFile(path, "latin1");
  }
  return texts;
}

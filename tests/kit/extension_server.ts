/**
 * A stdio server with methods of extensions that PML does not know. It answers each request with
 * the params that it got. Its tools send requests and notifications to the client.
 *
 *     deno run extension_server.ts [--modern] [--ledger] EXTENSION...
 *
 * With `--ledger`, it writes its process id to the file `pid.txt`, and the methods of notifications
 * to `heard.txt`.
 *
 * @module
 */

import { appendFileSync, writeFileSync } from "node:fs";
import process from "node:process";
import { createInterface } from "node:readline";

type Json = Record<string, unknown>;

const isModern = process.argv.includes("--modern");
const hasLedger = process.argv.includes("--ledger");
const ids = process.argv.slice(2).filter((one) => !one.startsWith("--"));
const capabilities = {
  tools: {},
  extensions: Object.fromEntries(ids.map((id) => [id, {}])),
};
const serverInfo = { name: "extension", version: "1" };
const TOOLS = ["echo", "tell", "ask", "heard", "able"]
  .map((name) => ({ name, inputSchema: { type: "object" } }));

/** The received notifications and answers. */
const heard: Json[] = [];
/** The resolvers of the requests of this server. */
const waiting = new Map<unknown, (answer: Json) => void>();
let able: unknown;

function send(message: Json): void {
  console.log(JSON.stringify({ jsonrpc: "2.0", ...message }));
}

function ask(id: unknown, method: unknown, params: unknown): Promise<Json> {
  const { promise, resolve } = Promise.withResolvers<Json>();
  waiting.set(id, resolve);
  send({ id, method, params });
  return promise;
}

function text(value: unknown): Json {
  return { content: [{ type: "text", text: JSON.stringify(value) ?? "" }] };
}

async function called({ name, arguments: args = {}, inputResponses }: Json): Promise<Json> {
  const { method, params, isLate, count = 1, id = "own" } = args as Json;
  switch (name) {
    case "heard":
      return text(heard);
    case "able":
      return text(able);
    case "tell": {
      const tell = () => {
        for (let at = 0; at < Number(count); at++) send({ method, params });
      };
      if (isLate) setTimeout(tell, 50);
      else tell();
      return text("told");
    }
    case "ask": {
      if (inputResponses !== undefined) return text(inputResponses);
      if (isModern) {
        return {
          resultType: "input_required",
          inputRequests: { one: { method, params } },
          requestState: "state",
        };
      }
      if (!isLate) return text(await ask(id, method, params));
      setTimeout(async () => heard.push(await ask(id, method, params)), 50);
      return text("asked later");
    }
    default:
      return { method: "tools/call", params: { name, arguments: args } };
  }
}

async function resultOf(method: string, params: Json): Promise<Json> {
  switch (method) {
    case "initialize":
      able = params.capabilities;
      return { protocolVersion: params.protocolVersion, capabilities, serverInfo };
    case "server/discover":
      return {
        supportedVersions: ["2026-07-28"],
        capabilities,
        serverInfo,
        resultType: "complete",
      };
    case "tools/list":
      return { tools: TOOLS };
    case "tools/call":
      return params.name === "echo" ? { method, params } : await called(params);
    default:
      return { method, params };
  }
}

if (hasLedger) writeFileSync("pid.txt", `${process.pid}`);
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params = {}, ...more } = JSON.parse(line);
  if (method === undefined) {
    waiting.get(id)?.(more);
    continue;
  }
  if (id === undefined) {
    if (/^notifications\/(?:initialized|cancelled)$/.test(method)) continue;
    heard.push({ method, params });
    if (hasLedger) appendFileSync("heard.txt", `${method}\n`);
    continue;
  }
  if (isModern) able = params._meta?.["io.modelcontextprotocol/clientCapabilities"];
  if (method === (isModern ? "initialize" : "server/discover")) {
    send({ id, error: { code: -32601, message: "Method not found" } });
  } else {
    void resultOf(method, params).then((result) => send({ id, result }));
  }
}

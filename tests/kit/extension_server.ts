/**
 * A stdio server with methods of extensions that PML does not know. It answers each request with
 * the params that it got.
 *
 *     deno run extension_server.ts EXTENSION...
 *
 * @module
 */

import process from "node:process";
import { createInterface } from "node:readline";

const extensions = Object.fromEntries(process.argv.slice(2).map((id) => [id, {}]));
const TOOL = { name: "echo", inputSchema: { type: "object" } };

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params, ...more } = JSON.parse(line);
  if (id === undefined) continue;
  const { protocolVersion } = params ?? {};
  const serverInfo = { name: "extension", version: "1" };
  const capabilities = { tools: {}, extensions };
  const result = method === "initialize"
    ? { protocolVersion, capabilities, serverInfo }
    : method === "tools/list"
    ? { tools: [TOOL] }
    : { method, params, more };
  const isKnown = method !== "server/discover";
  const answer = isKnown ? { result } : { error: { code: -32601, message: "Method not found" } };
  console.log(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
}

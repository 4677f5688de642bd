/**
 * The baseline for start and memory: an SDK server with one tool.
 *
 * @module
 */

import { Server } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

serveStdio(() => {
  const server = new Server({ name: "bare", version: "1" }, { capabilities: { tools: {} } });
  server.setRequestHandler("tools/list", () => ({
    tools: [{ name: "echo", inputSchema: { type: "object" } }],
  }));
  server.setRequestHandler("tools/call", () => ({ content: [{ type: "text", text: "hello\n" }] }));
  return server;
});

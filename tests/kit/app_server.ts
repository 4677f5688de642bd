/**
 * An MCP server of the SDK with a page (MCP Apps), on stdio and in both revisions. Each such server
 * has the same page and the same tool, and another tool for its page alone.
 *
 *     deno run -A app_server.ts NAME
 *
 * @module
 */

import { McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

const PAGE = "ui://get-time/app.html";
const [name = "app"] = Deno.args;

serveStdio(appServer);

function appServer(): McpServer {
  const server = new McpServer({ name, version: "1.0.0" });
  const time = () => ({
    content: [
      { type: "text" as const, text: `It is now at ${name}` },
      { type: "resource_link" as const, uri: PAGE, name: "page" },
    ],
    _meta: { ui: { resourceUri: PAGE }, "x/kept": 1 },
  });
  const _meta = { ui: { resourceUri: PAGE }, "ui/resourceUri": PAGE };
  server.registerTool("get-time", { description: "Tell the time", _meta }, time);
  const alone = { ui: { visibility: ["app"] } };
  const polled = () => ({ content: [{ type: "text" as const, text: `polled at ${name}` }] });
  server.registerTool(`poll-${name}`, { description: "Poll the time", _meta: alone }, polled);
  const mimeType = "text/html;profile=mcp-app";
  const csp = { connectDomains: ["https://example.com"] };
  server.registerResource("page", PAGE, { mimeType }, () => ({
    contents: [{ uri: PAGE, mimeType, text: `<p>${name}</p>`, _meta: { ui: { csp } } }],
  }));
  return server;
}

/**
 * The baseline over HTTP: the SDK's own HTTP handlers on `node:http`, with one tool. With a command,
 * passes calls on to that stdio server through the SDK's client.
 *
 *     deno run -A sdk.ts PORT [COMMAND ARGS...]
 *
 * @module
 */

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import {
  createMcpHandler,
  isLegacyRequest,
  Server,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";

const [port = "0", command, ...args] = Deno.args;
const backend = command === undefined ? undefined : await openBackend(command);
const sessions = new Map<string, WebStandardStreamableHTTPServerTransport>();
const modern = createMcpHandler(createServerInstance, { legacy: "reject" });

async function openBackend(command: string): Promise<Client> {
  const client = new Client({ name: "bench", version: "1" });
  await client.connect(new StdioClientTransport({ command, args }));
  return client;
}

function createServerInstance(): Server {
  const server = new Server({ name: "sdk", version: "1" }, { capabilities: { tools: {} } });
  server.setRequestHandler("tools/list", () => ({
    tools: [{ name: "tell", inputSchema: { type: "object" } }],
  }));
  server.setRequestHandler("tools/call", async ({ params }) => {
    if (backend !== undefined) return await backend.callTool(params);
    return { content: [{ type: "text", text: String(params.arguments?.text) }] };
  });
  return server;
}

async function answer(request: Request, body: unknown): Promise<Response> {
  if (!await isLegacyRequest(request, body)) {
    return await modern.fetch(request, { parsedBody: body });
  }
  const transportOfSession = sessions.get(request.headers.get("mcp-session-id") ?? "");
  if (transportOfSession !== undefined) {
    return await transportOfSession.handleRequest(request, { parsedBody: body });
  }
  const transport = new WebStandardStreamableHTTPServerTransport({
    sessionIdGenerator: () => crypto.randomUUID(),
    onsessioninitialized: (id) => void sessions.set(id, transport),
  });
  await createServerInstance().connect(transport);
  return await transport.handleRequest(request, { parsedBody: body });
}

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const parts: Uint8Array[] = [];
  for await (const part of request) parts.push(part);
  const text = await new Blob(parts as BlobPart[]).text();
  const { method = "", headers } = request;
  const web = new Request("http://localhost/mcp", { method, headers: headers as HeadersInit });
  const reply = await answer(web, text === "" ? undefined : JSON.parse(text));
  response.writeHead(reply.status, Object.fromEntries(reply.headers));
  for await (const part of reply.body ?? []) response.write(part);
  response.end();
}

const server = createServer((request, response) => void serve(request, response));
server.listen(Number(port), "127.0.0.1", () => console.log("listening"));

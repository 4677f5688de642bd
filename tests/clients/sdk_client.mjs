/**
 * The official SDK's client for node: lists the tools of PML, reads a file, and writes one, for
 * which its person answers PML's question with the word of the first argument.
 *
 *     node sdk_client.mjs ANSWER PROGRAM [ARGUMENT...]
 */

import process from "node:process";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const [answer, command, ...args] = process.argv.slice(2);
const client = new Client({ name: "sdk", version: "1" }, {
  capabilities: { elicitation: { form: {} } },
});
const asked = [];
client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
  asked.push(params.message);
  return { action: "accept", content: { answer } };
});
await client.connect(new StdioClientTransport({ command, args, env: process.env }));
const call = (tool, given) =>
  client.callTool({ name: "call", arguments: { tool, arguments: given } });
const { tools } = await client.listTools();
const read = await call("filesystem:read_file", { path: "a.txt" });
const wrote = await call("filesystem:write_file", { path: "b.txt", content: "written" });
await client.close();
console.log(JSON.stringify({ tools: tools.map(({ name }) => name), read, wrote, asked }));

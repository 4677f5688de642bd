/**
 * An MCP server on stdio that sends no response until a file exists. It has one tool, one prompt,
 * one resource and one template, and writes each method that it gets into a ledger.
 *
 *     deno run -A gated_server.ts GATE LEDGER [INSTRUCTIONS]
 *
 * @module
 */

import process from "node:process";
import { repoFile } from "./pml_command.ts";

type Json = Readonly<Record<string, unknown>>;

/** Returns the definition of a gated server, whose gate and ledger are files of the workspace. */
export function gatedServer(name: string, instructions = ""): Record<string, unknown> {
  const script = repoFile("tests/kit/gated_server.ts");
  const args = [
    "run",
    "-A",
    "--quiet",
    "--no-config",
    script,
    `./${name}.gate`,
    `./${name}.ledger`,
  ];
  return { command: process.execPath, args: [...args, instructions] };
}

function resultOf(method: string, instructions: string): Json {
  switch (method) {
    case "initialize":
      return {
        protocolVersion: "2025-11-25",
        capabilities: { tools: { listChanged: true }, prompts: {}, resources: {} },
        serverInfo: { name: "gated", version: "1" },
        ...(instructions !== "" && { instructions }),
      };
    case "tools/list":
      return { tools: [{ name: "go", inputSchema: { type: "object" } }] };
    case "tools/call":
      return { content: [{ type: "text", text: "went" }] };
    case "prompts/list":
      return { prompts: [{ name: "hello" }] };
    case "resources/list":
      return { resources: [{ uri: "test://a", name: "a" }] };
    case "resources/templates/list":
      return { resourceTemplates: [{ uriTemplate: "test://{x}", name: "x" }] };
    default:
      return {};
  }
}

async function opened(gate: string): Promise<void> {
  while (!await Deno.stat(gate).then(() => true, () => false)) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

async function answer(line: string): Promise<void> {
  const [gate = "", ledger = "", instructions = ""] = Deno.args;
  const { id, method } = JSON.parse(line);
  Deno.writeTextFileSync(ledger, `${method}\n`, { append: true });
  if (id === undefined) return;
  await opened(gate);
  const said = method === "server/discover"
    ? { error: { code: -32601, message: "Method not found" } }
    : { result: resultOf(method, instructions) };
  console.log(JSON.stringify({ jsonrpc: "2.0", id, ...said }));
}

if (import.meta.main) {
  let rest = "";
  for await (const text of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) await answer(line);
  }
}

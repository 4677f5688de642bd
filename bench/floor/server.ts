/**
 * A minimal, fast server without the SDK: `echo` returns a text, and `payload` returns a text with a
 * number of bytes.
 *
 *     deno run -A bench/floor/server.ts [TOOLS]
 *
 * @module
 */

import process from "node:process";

/** The members of a request that the server reads. */
interface Request {
  readonly id?: number | string;
  readonly method: string;
  readonly params?: {
    readonly name?: string;
    readonly arguments?: { readonly text?: string; readonly bytes?: number };
  };
}

const GREETING = {
  protocolVersion: "2025-11-25",
  capabilities: { tools: {} },
  serverInfo: { name: "plain", version: "1" },
};
const tools = JSON.stringify({ tools: toolsOf(Number(Deno.args[0] ?? 10)) });
const payloads = new Map<number, string>();

let rest = "";
process.stdin.setEncoding("utf8").on("data", (piece: string) => {
  const lines = (rest + piece).split("\n");
  rest = lines.pop() ?? "";
  lines.forEach(answer);
});

function answer(line: string): void {
  const { id, method, params } = JSON.parse(line) as Request;
  if (id === undefined) return;
  const result = resultOf(method, params);
  process.stdout.write(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}\n`);
}

function resultOf(method: string, params: Request["params"]): string {
  if (method === "initialize") return JSON.stringify(GREETING);
  if (method === "tools/list") return tools;
  if (method !== "tools/call") return "{}";
  const { text = "", bytes } = params?.arguments ?? {};
  return bytes === undefined ? textResult(text) : payloadOf(bytes);
}

function payloadOf(bytes: number): string {
  const payload = payloads.get(bytes) ?? textResult("abcdefghij ".repeat(bytes / 11 + 1));
  payloads.set(bytes, payload);
  return payload;
}

function textResult(text: string): string {
  return JSON.stringify({ content: [{ type: "text", text }] });
}

function toolsOf(count: number): readonly unknown[] {
  const fixedTools = [
    toolOf("echo", { text: { type: "string", description: "What is returned" } }),
    toolOf("payload", { bytes: { type: "integer", description: "How many bytes are returned" } }),
  ];
  const others = Array.from(
    { length: Math.max(count - fixedTools.length, 0) },
    (_, at) =>
      toolOf(`update_issue_${at}`, {
        id: { type: "string", description: "The number of the issue", pattern: "^[0-9]{1,9}$" },
        title: { type: "string", description: "A title that people can read", maxLength: 256 },
        labels: { type: "array", items: { type: "string" }, description: "What it is filed under" },
        state: { enum: ["open", "closed", "draft"], description: "How it stands" },
      }),
  );
  return [...fixedTools, ...others];
}

function toolOf(name: string, properties: object): unknown {
  return {
    name,
    description: `Does ${name.replaceAll("_", " ")}, as an agent would ask for it`,
    inputSchema: { type: "object", properties, additionalProperties: false },
  };
}

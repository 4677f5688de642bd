/**
 * Counts the tools that a client lists, and their tokens: starts each server in a file with
 * `mcpServers`, as a client does, and requests its tools.
 *
 *     what-a-client-lists .mcp.json
 *
 * @module
 */

import { countTokens } from "gpt-tokenizer/encoding/o200k_base";

/** The definition of a server in the file. */
interface Entry {
  readonly command: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** The numbers of one server. */
interface Row {
  readonly name: string;
  readonly tools: number;
  readonly tokens: number;
}

const INITIALIZE = {
  protocolVersion: "2025-11-25",
  capabilities: {},
  clientInfo: { name: "what-a-client-lists", version: "1.0.0" },
};

if (import.meta.main) await main(Deno.args[0] ?? "");

async function main(file: string): Promise<void> {
  const { mcpServers } = JSON.parse(await Deno.readTextFile(file)) as {
    readonly mcpServers: Readonly<Record<string, Entry>>;
  };
  const rows: Row[] = [];
  for (const [name, entry] of Object.entries(mcpServers)) {
    const tools = await toolsOf(entry);
    rows.push({ name, tools: tools.length, tokens: countTokens(JSON.stringify(tools)) });
  }
  const sum = (valueOf: (row: Row) => number) => rows.reduce((all, row) => all + valueOf(row), 0);
  const total = {
    name: "together",
    tools: sum((row) => row.tools),
    tokens: sum((row) => row.tokens),
  };
  for (const row of rows.length > 1 ? [...rows, total] : rows) console.log(lineOf(row));
}

function lineOf({ name, tools, tokens }: Row): string {
  const tokenText = tokens.toLocaleString("en-US").padStart(7);
  return `${name.padEnd(12)}${String(tools).padStart(4)} tools${tokenText} tokens`;
}

async function toolsOf({ command, args = [], env = {} }: Entry): Promise<readonly unknown[]> {
  const child = new Deno.Command(command, {
    args: [...args],
    env,
    stdin: "piped",
    stdout: "piped",
    stderr: "null",
  }).spawn();
  const writer = child.stdin.getWriter();
  const lines = linesOf(child.stdout);
  const send = (message: object) =>
    writer.write(new TextEncoder().encode(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`));
  await send({ id: 1, method: "initialize", params: INITIALIZE });
  await resultOf(lines, 1);
  await send({ method: "notifications/initialized" });
  await send({ id: 2, method: "tools/list", params: {} });
  const { tools } = await resultOf(lines, 2);
  await writer.close();
  await child.status;
  return tools ?? [];
}

/** Reads messages until the result of a request. Ignores other messages. */
async function resultOf(
  lines: AsyncIterator<string>,
  requestId: number,
): Promise<{ readonly tools?: readonly unknown[] }> {
  for (;;) {
    const { done, value } = await lines.next();
    if (done) throw new Error("The server ended before it answered");
    const { id, result } = JSON.parse(value);
    if (id === requestId) return result;
  }
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
}

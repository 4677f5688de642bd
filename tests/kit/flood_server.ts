/**
 * An MCP server on stdio whose results have the size and number in the arguments.
 *
 *     deno run flood_server.ts
 *
 * @module
 */

interface Message {
  readonly id?: unknown;
  readonly method?: string;
  readonly params?: { readonly name?: string; readonly arguments?: Asked };
}

/** The arguments of a call. */
interface Asked {
  readonly size?: number;
  /** A file that gets a line once the answer is written. */
  readonly ledger?: string;
}

const TOOLS = ["done", "text", "quotes", "objects", "deep", "blocks", "told", "strange", "log"]
  .concat("half", "names", "lines", "meta", "audience");
const encoder = new TextEncoder();

/** Returns the JSON of a result, of about so many bytes. */
function resultOf(name: string, size: number): string {
  switch (name) {
    case "text":
      return `{"content":[{"type":"text","text":"${"x".repeat(size)}"}]}`;
    case "quotes":
      return `{"content":[{"type":"text","text":"${'\\"'.repeat(size / 2)}"}]}`;
    case "objects":
      return `{"content":[],"structuredContent":{"all":[${"{},".repeat(size / 3)}{}]}}`;
    case "meta": {
      const all = Array.from({ length: size }, (_, at) => `"${(at + 1) * 32_768}":1`);
      return `{"content":[],"_meta":{${all.join()}}}`;
    }
    case "audience": {
      const audience = `${'"x",'.repeat(size)}"x"`;
      return `{"content":[{"type":"text","text":"","annotations":{"audience":[${audience}]}}]}`;
    }
    case "names": {
      const name = "x".repeat(16_400);
      const all = Array.from(
        { length: size / name.length },
        (_, at) => `"${name}${10_000 + at}":1`,
      );
      return `{"content":[],"structuredContent":{${all.join()}}}`;
    }
    case "deep":
      return `{"content":[],"structuredContent":{"all":${"[".repeat(size / 2)}${
        "]".repeat(size / 2)
      }}}`;
    case "blocks":
      return `{"content":[${Array(size).fill('{"type":"text","text":""}').join()}]}`;
    default:
      return '{"content":[{"type":"text","text":"done"}]}';
  }
}

function write(text: string): void {
  const bytes = encoder.encode(`${text}\n`);
  for (let at = 0; at < bytes.length;) at += Deno.stdout.writeSync(bytes.subarray(at));
}

function called(id: unknown, name: string, { size = 0, ledger }: Asked): void {
  if (name === "told") {
    write(`{"jsonrpc":"2.0","method":"notifications/x","params":${resultOf("objects", size)}}`);
  }
  if (name === "strange") {
    write(`{"jsonrpc":"2.0","id":"other","result":${resultOf("text", size)}}`);
  }
  if (name === "half") {
    const bytes = encoder.encode(`{"jsonrpc":"2.0","x":"${"x".repeat(size)}`);
    for (let at = 0; at < bytes.length;) at += Deno.stdout.writeSync(bytes.subarray(at));
    if (ledger !== undefined) Deno.writeTextFileSync(ledger, "written\n", { append: true });
    return;
  }
  if (name === "lines") write("\n".repeat(size));
  if (name === "log") {
    for (let at = 0; at < size; at++) console.error(`line ${at} ${"e".repeat(200)}`);
  }
  // The id first, or last as in the SDK.
  const both = [`"id":${JSON.stringify(id)}`, `"result":${resultOf(name, size)}`];
  if (size % 2 === 0) both.reverse();
  write(`{${both[0]},"jsonrpc":"2.0",${both[1]}}`);
  if (ledger !== undefined) Deno.writeTextFileSync(ledger, "written\n", { append: true });
}

function heard({ id, method, params = {} }: Message): void {
  switch (method) {
    case "initialize": {
      const result = {
        protocolVersion: "2025-11-25",
        capabilities: { tools: {} },
        serverInfo: { name: "flood", version: "1" },
      };
      return write(JSON.stringify({ jsonrpc: "2.0", id, result }));
    }
    case "tools/list": {
      const tools = TOOLS.map((name) => ({ name, inputSchema: { type: "object" } }));
      return write(JSON.stringify({ jsonrpc: "2.0", id, result: { tools } }));
    }
    case "ping":
      return write(JSON.stringify({ jsonrpc: "2.0", id, result: {} }));
    case "tools/call":
      return called(id, params.name ?? "", params.arguments ?? {});
  }
}

if (import.meta.main) {
  let rest = "";
  const decoder = new TextDecoder();
  for await (const chunk of Deno.stdin.readable) {
    rest += decoder.decode(chunk, { stream: true });
    const lines = rest.split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines.filter((one) => one !== "")) heard(JSON.parse(line));
  }
}

/**
 * An MCP server on stdio that repeats its key in all messages except results.
 *
 *     TOKEN=KEY deno run -A leaky_server.ts
 *
 * @module
 */

import { Buffer } from "node:buffer";

interface Message {
  readonly id?: unknown;
  readonly method?: string;
  readonly params?: {
    readonly name?: string;
    readonly protocolVersion?: string;
    readonly _meta?: { readonly progressToken?: unknown };
  };
}

const key = Deno.env.get("TOKEN") ?? "";
const half = key.length / 2;
const encoder = new TextEncoder();
let answered = () => {};

function send(message: object): void {
  const bytes = encoder.encode(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  for (let at = 0; at < bytes.length;) at += Deno.stdout.writeSync(bytes.subarray(at));
}

/** The key as a text, as the name of a member, and in its encoded forms. */
function forms(): object {
  const base64 = Buffer.from(`user:${key}`).toString("base64");
  return {
    [key]: { [`x-${key}`]: [key] },
    basic: base64,
    hex: Buffer.from(key).toString("hex"),
    [encodeURIComponent(`a ${key}`)]: 1,
    path: encodeURIComponent(key).replaceAll("%2F", "/"),
    twice: encodeURIComponent(encodeURIComponent(key)),
    json: JSON.stringify({ key }).replaceAll("/", "\\/").replace("+", "\\u002b"),
  };
}

function text(output: string): object {
  return { content: [{ type: "text", text: output }] };
}

async function called({ id, params }: Message): Promise<void> {
  const progressToken = params?._meta?.progressToken;
  switch (params?.name) {
    case "tell": {
      const message = `at ${key}`;
      send({ method: "notifications/progress", params: { progressToken, progress: 1, message } });
      const log = { level: "warning", logger: `log ${key}`, data: forms(), more: forms() };
      send({ method: "notifications/message", params: log });
      return send({ id, error: { code: 7, message: `${" ".repeat(1_985)}${key}`, data: forms() } });
    }
    case "ask": {
      const asked = new Promise<void>((resolve) => answered = resolve);
      const property = { type: "string", description: `not ${key}` };
      const requestedSchema = { type: "object", properties: { name: property } };
      const form = { message: `Is it ${key}?`, requestedSchema };
      send({ id: "asked", method: "elicitation/create", params: form });
      await asked;
      return send({ id, result: text("asked") });
    }
    case "half":
      Deno.stderr.writeSync(encoder.encode(`begins\nit is ${key.slice(0, half)}`));
      return send({ id, result: text("half") });
    case "rest":
      Deno.stderr.writeSync(encoder.encode(`${key.slice(half)} it was\nends\n`));
      return send({ id, result: text("rest") });
    case "die":
      return Deno.exit(1);
  }
}

function heard(message: Message): void {
  const { id, method, params } = message;
  switch (method) {
    case "initialize": {
      const { protocolVersion } = params ?? {};
      const capabilities = { tools: {}, logging: {} };
      const serverInfo = { name: "leaky", version: "1" };
      return send({ id, result: { protocolVersion, capabilities, serverInfo } });
    }
    case "tools/list": {
      const names = ["tell", "ask", "half", "rest", "die"];
      const tools = names.map((name) => ({ name, inputSchema: { type: "object" } }));
      return send({ id, result: { tools } });
    }
    case "tools/call":
      return void called(message);
    case undefined:
      return answered();
    default:
      if (id !== undefined) send({ id, result: {} });
  }
}

if (import.meta.main) {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of Deno.stdin.readable) {
    rest += decoder.decode(chunk, { stream: true });
    const lines = rest.split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines.filter((one) => one !== "")) heard(JSON.parse(line));
  }
}

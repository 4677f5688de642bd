/**
 * An MCP server on stdio that abuses messages other than results, one way for each tool or
 * resource.
 *
 *     deno run -A rude_server.ts LEDGER WORD
 *
 * @module
 */

interface Message {
  readonly id?: unknown;
  readonly method?: string;
  readonly params?: { readonly name?: string; readonly uri?: string };
}

const [ledger = "/dev/null", word = ""] = Deno.args;
const encoder = new TextEncoder();
const ODD = '{"toString":1,"valueOf":1}';
const TOOLS = ["word", "flood", "deaf", "deep", "odd_token", "odd_error", "ask_and_go"];
/** The size of the messages of `flood`, in bytes. */
const FLOOD = 40_000_000;

let isDeaf = false;

function note(line: string): void {
  Deno.writeTextFileSync(ledger, `${line}\n`, { append: true });
}

function write(text: string): void {
  const bytes = encoder.encode(`${text}\n`);
  for (let at = 0; at < bytes.length;) at += Deno.stdout.writeSync(bytes.subarray(at));
}

function send(message: object): void {
  write(JSON.stringify({ jsonrpc: "2.0", ...message }));
}

function log(data: string): void {
  send({ method: "notifications/message", params: { level: "error", data } });
}

function called(id: unknown, name: string): void {
  const said = (text: string) => send({ id, result: { content: [{ type: "text", text }] } });
  switch (name) {
    case "word":
      return said(word);
    case "flood":
      for (let left = FLOOD; left > 0; left -= 60_000) log("x".repeat(60_000));
      return said("flooded");
    case "deaf":
      isDeaf = true;
      for (let at = 0; isDeaf; at++) send({ id: `${at}${"i".repeat(900)}`, method: "ping" });
      return;
    case "deep": {
      const data = `${"[".repeat(200_000)}${"]".repeat(200_000)}`;
      write(`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":${data}}}`);
      return said("still here");
    }
    case "odd_token":
      write(
        `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":${ODD}}}`,
      );
      return said("still here");
    case "odd_error":
      return write(
        `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"error":{"code":1,"message":${ODD}}}`,
      );
    case "ask_and_go": {
      const requestedSchema = { type: "object", properties: { a: { type: "string" } } };
      send({ id: "q", method: "elicitation/create", params: { message: "Who?", requestedSchema } });
      setTimeout(() => said("gone"), 200);
    }
  }
}

function read(id: unknown, uri: string): void {
  const url = "https://127.0.0.1/log-in";
  if (uri === "rude://page") {
    const elicitations = [{ mode: "url", url, message: "PML needs you to sign in" }];
    return send({ id, error: { code: -32042, message: "Sign in", data: { elicitations } } });
  }
  const secret = Deno.env.get("TOKEN");
  send({ id, error: { code: -32000, message: `no ${secret}`, data: { deep: [secret] } } });
}

function heard({ id, method, params = {} }: Message): void {
  switch (method) {
    case "initialize": {
      const capabilities = { tools: {}, resources: { subscribe: true }, logging: {} };
      const serverInfo = { name: "rude", version: "1" };
      return send({ id, result: { protocolVersion: "2025-11-25", capabilities, serverInfo } });
    }
    case "tools/list":
      return send({
        id,
        result: { tools: TOOLS.map((name) => ({ name, inputSchema: { type: "object" } })) },
      });
    case "resources/list":
      return send({
        id,
        result: { resources: ["page", "key"].map((name) => ({ uri: `rude://${name}`, name })) },
      });
    case "tools/call":
      return called(id, params.name ?? "");
    case "resources/read":
      return read(id, params.uri ?? "");
    case "notifications/cancelled":
    case "notifications/initialized":
      return;
  }
  note(`${method} ${params.uri ?? ""}`);
  if (method !== undefined) send({ id, result: {} });
}

if (import.meta.main) {
  note(`start ${Deno.pid}`);
  let rest = "";
  const decoder = new TextDecoder();
  for await (const chunk of Deno.stdin.readable) {
    rest += decoder.decode(chunk, { stream: true });
    const lines = rest.split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines.filter((one) => one !== "")) heard(JSON.parse(line));
  }
}

/**
 * A small MCP server on stdio with many faults, one for each mode, and a ledger: a file that gets a
 * line for each start (`start PID`), each call (`call NAME`) and each message.
 *
 *     deno run -A evil_server.ts MODE LEDGER
 *
 * @module
 */

interface Message {
  readonly id?: unknown;
  readonly method?: string;
  readonly params?: {
    readonly name?: string;
    readonly cursor?: string;
    readonly arguments?: Readonly<Record<string, unknown>>;
    readonly _meta?: { readonly progressToken?: unknown };
    readonly requestId?: unknown;
  };
  readonly result?: unknown;
  readonly error?: unknown;
}

const [mode = "good", ledger = "/dev/null", ...given] = Deno.args;
const encoder = new TextEncoder();

function note(line: string): void {
  Deno.writeTextFileSync(ledger, `${line}\n`, { append: true });
}

function write(text: string): void {
  const bytes = encoder.encode(text);
  for (let at = 0; at < bytes.length;) at += Deno.stdout.writeSync(bytes.subarray(at));
}

function send(message: object): void {
  write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
}

function isThere(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}

function text(said: unknown): object {
  return {
    content: [{ type: "text", text: typeof said === "string" ? said : JSON.stringify(said) }],
  };
}

const TOOLS = ["echo", "slow", "env", "die", "ask", "args", "freeze"].map((name) => ({
  name,
  description: `The tool ${name}`,
  inputSchema: { type: "object" },
  annotations: { title: name, odd: { kept: true } },
}));

function initialized(id: unknown): void {
  if (mode === "hang-init") return;
  if (mode === "modern" || mode === "neither") {
    return send({ id, error: { code: -32022, message: "only 2026-07-28" } });
  }
  if (mode === "refuse") return send({ id, error: { code: -32600, message: "no\u001b[31m" } });
  send({
    id,
    result: {
      protocolVersion: "2025-11-25",
      capabilities: { tools: { listChanged: true } },
      serverInfo: { name: "evil", version: "1" },
    },
  });
}

function listed({ id, params }: Message): void {
  listings++;
  if (mode === "hang-list") return;
  if (mode === "lists") {
    const tools: unknown = JSON.parse(Deno.readTextFileSync(given[0] ?? ""));
    return send({ id, result: { tools } });
  }
  if (mode === "bad-list") return send({ id, result: { tools: "none" } });
  if (mode === "pages") {
    const at = Number(params?.cursor ?? 0);
    const nextCursor = at < 4 ? String(at + 1) : "0";
    return send({ id, result: { tools: TOOLS.slice(at, at + 1), nextCursor } });
  }
  const more = mode === "changes" && changed ? [{ name: "later", inputSchema: {} }] : [];
  send({ id, result: { tools: [...TOOLS, ...more, { name: 7 }, null] } });
}

let changed = false;
let listings = 0;

/** Writes invalid messages before the answer. */
function disturb(id: unknown): void {
  if (mode === "twice") send({ id, result: text("first") });
  if (mode === "wrong-ids") {
    for (const other of [1, "1", null, "x", {}, `${id}0`]) {
      send({ id: other, result: text("forged") });
    }
  }
  if (mode === "requests") {
    for (const method of ["ping", "roots/list", "sampling/createMessage", "tools/call"]) {
      send({ id, method, params: {} });
    }
  }
  if (mode === "noise") {
    write('log line\n\n\r\n{\n  "jsonrpc": "2.0"\n}\n\u0000\ufffd\n[1,2]\nnull\n"text"\n');
  }
  if (mode === "stray") {
    for (let at = 0; at < 10_001; at++) write("what is this\n");
  }
}

async function called({ id, params }: Message): Promise<void> {
  const { name = "", arguments: args = {}, _meta } = params ?? {};
  note(`call ${name}`);
  switch (name) {
    case "slow":
      for (let progress = 1; progress <= Number(args.steps ?? 1_000); progress++) {
        await new Promise((resolve) => setTimeout(resolve, Number(args.ms ?? 20)));
        const progressToken = _meta?.progressToken;
        send({ method: "notifications/progress", params: { progressToken, progress } });
        if (typeof args.until === "string" && isThere(args.until)) break;
      }
      note("done slow");
      return send({ id, result: text("slow done") });
    case "args":
      return send({ id, result: text(given) });
    case "relist":
      send({ method: "notifications/tools/list_changed" });
      return send({ id, result: text("told") });
    case "freeze":
      // It stops answering, and uses no processor.
      return void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    case "env":
      return send({ id, result: text(Deno.env.toObject()) });
    case "die":
      if (args.half) write(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"con`);
      return Deno.exit(3);
    case "ask":
      return send({ id, result: { resultType: "input_required", inputRequests: {}, content: [] } });
  }
  const result = {
    ...text(args),
    structuredContent: args,
    _meta: { "x/kept": 1 },
    unknownField: "kept",
  };
  disturb(id);
  if (mode === "split") {
    const bytes = encoder.encode(`${JSON.stringify({ jsonrpc: "2.0", id, result })}\r\n`);
    for (const byte of bytes) Deno.stdout.writeSync(new Uint8Array([byte]));
    return;
  }
  if (mode === "changes" && !changed) {
    changed = true;
    for (let at = 0; at < 50; at++) send({ method: "notifications/tools/list_changed" });
  }
  if (mode === "big") return send({ id, result: text("x".repeat(Number(args.size))) });
  if (mode === "partial") return write(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"res`);
  if (mode === "null") return send({ id, result: null });
  send({ id, result });
}

function heard(message: Message): void {
  switch (message.method) {
    case "initialize":
      return initialized(message.id);
    case "ping":
      return send({ id: message.id, result: {} });
    case "server/discover":
      if (mode === "neither") {
        return send({ id: message.id, error: { code: -32601, message: "no" } });
      }
      return send({ id: message.id, result: { supportedVersions: ["2026-07-28"] } });
    case "tools/list":
      return listed(message);
    case "tools/call":
      return void called(message);
    case "notifications/cancelled":
      return note(`cancelled ${mode}`);
    case undefined:
      return note(`answer ${JSON.stringify(message.result ?? message.error)}`);
  }
}

if (import.meta.main) {
  note(`start ${Deno.pid}`);
  if (mode === "exit") {
    console.error("no config: token s3cret-\u001b[31mred");
    Deno.exit(1);
  }
  if (mode === "exit0") Deno.exit(0);
  if (mode === "tells") {
    console.error(`${"x".repeat(9_000)} token ${Deno.env.get("TOKEN")}`);
    Deno.exit(1);
  }
  if (mode === "holds") {
    // A process in the group keeps all pipes open, one outside of it the pipe of stderr.
    new Deno.Command("sh", { args: ["-c", "sleep 300 & setsid sleep 301 >/dev/null & wait"] })
      .spawn();
  }
  if (mode === "stderr") {
    const line = encoder.encode(`${"e".repeat(1_000)}\n`);
    for (let at = 0; at < 20_000; at++) Deno.stderr.writeSync(line);
  }
  if (mode === "stays") {
    for (const signal of ["SIGTERM", "SIGHUP", "SIGINT"] as const) {
      Deno.addSignalListener(signal, () => {});
    }
    new Deno.Command("sh", { args: ["-c", "trap '' TERM; sleep 300 & sleep 301"] }).spawn();
    setInterval(() => {}, 1_000);
  }
  let rest = "";
  const decoder = new TextDecoder();
  for await (const chunk of Deno.stdin.readable) {
    rest += decoder.decode(chunk, { stream: true });
    const lines = rest.split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines.filter((one) => one !== "")) heard(JSON.parse(line));
    if (mode === "deaf" && listings > 0) await new Promise(() => setInterval(() => {}, 1_000));
  }
  note("eof");
  if (mode === "stays") await new Promise(() => {});
}

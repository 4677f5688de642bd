/**
 * An MCP server on stdio that runs the script in the arguments of each call.
 *
 *     deno run -A script_server.ts LEDGER
 *
 * @module
 */

/**
 * One step of a call. `$ID`, `$TOKEN` and `$ANSWER` in a line are replaced by their values, as
 * JSON.
 */
export type Step =
  /** Writes a line, once or until so many are written or the call is cancelled. */
  | { readonly write: string; readonly times?: number }
  | { readonly wait: number }
  /** Keeps its event loop busy. */
  | { readonly block: number }
  /** Waits until a file exists. */
  | { readonly until: string }
  /** Sends a request to the client, and waits for its answer. */
  | { readonly ask: { readonly method: string; readonly params: unknown } }
  /** Records the contents of the files of a folder. */
  | { readonly read: string }
  /** Changes the descriptions of its tools from now on, and sends a notification. */
  | { readonly describe: string }
  | { readonly exit: number };

/** The arguments of a call: its steps, and whether the server answers by itself after them. */
export interface Script {
  readonly steps?: readonly Step[];
  readonly silent?: boolean;
}

interface Message {
  readonly id?: unknown;
  readonly method?: string;
  readonly params?: {
    readonly name?: string;
    readonly arguments?: Script;
    readonly requestId?: unknown;
    readonly _meta?: { readonly progressToken?: unknown };
  };
  readonly result?: unknown;
  readonly error?: unknown;
}

const [ledger = "/dev/null"] = Deno.args;
const encoder = new TextEncoder();
const cancelled = new Set<unknown>();
const answers = new Map<unknown, (answer: unknown) => void>();
const OBJECT = { type: "object" };
const NUMBERED = {
  type: "object",
  properties: { n: { type: "integer" } },
  required: ["n"],
  additionalProperties: false,
};
let words = "as it was";
let asked = 0;

if (import.meta.main) await serve();

async function serve(): Promise<void> {
  note(`start ${Deno.pid} ${Deno.env.get("WORD") ?? ""}`);
  let rest = "";
  for await (const chunk of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) take(JSON.parse(line));
  }
}

function take({ id, method, params = {}, ...answer }: Message): void {
  const said = (result: unknown) => send({ id, result });
  switch (method) {
    case undefined:
      answers.get(id)?.(answer);
      return;
    case "initialize":
      return said({
        protocolVersion: "2025-11-25",
        capabilities: { tools: { listChanged: true } },
        serverInfo: { name: "script", version: "1" },
      });
    case "notifications/cancelled":
      cancelled.add(params.requestId);
      return note("cancelled");
    case "notifications/progress":
      return note(`progress ${JSON.stringify(params)}`);
    case "notifications/roots/list_changed":
      return note("roots changed");
    case "tools/list":
      return said({ tools: tools() });
    case "tools/call": {
      const { steps: _, silent: _s, ...own } = params.arguments ?? {};
      note(`call ${params.name} ${JSON.stringify(own)}`);
      return void called(params, id);
    }
    default:
      if (id !== undefined) said({});
  }
}

function tools(): readonly object[] {
  const tool = (name: string, more: object = {}) => ({
    ...{ name, description: words, inputSchema: OBJECT },
    ...more,
  });
  return [
    ...[tool("run"), tool("other"), tool("hidden", { visibility: "internal" })],
    tool("strict", { inputSchema: NUMBERED }),
    tool("shaped", { outputSchema: NUMBERED }),
  ];
}

async function called(
  { arguments: script = {}, _meta }: NonNullable<Message["params"]>,
  id: unknown,
) {
  const said: unknown[] = [];
  const filled = (line: string) =>
    line.replaceAll("$ID", JSON.stringify(id))
      .replaceAll("$TOKEN", JSON.stringify(_meta?.progressToken ?? null))
      .replaceAll("$ANSWER", () => JSON.stringify(said.at(-1) ?? null));
  for (const step of script.steps ?? []) {
    if ("write" in step) await written(`${filled(step.write)}\n`, { times: step.times, id });
    else if ("wait" in step) await new Promise((resolve) => setTimeout(resolve, step.wait));
    else if ("block" in step) {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, step.block);
    } else if ("until" in step) await there(step.until);
    else if ("ask" in step) said.push(await ask(step.ask));
    else if ("read" in step) note(`read ${textIn(step.read)}`);
    else if ("describe" in step) {
      words = step.describe;
      send({ method: "notifications/tools/list_changed" });
    } else Deno.exit(step.exit);
  }
  if (script.silent === true) return;
  const text = said.length === 0 ? "done" : JSON.stringify(said);
  send({ id, result: { content: [{ type: "text", text }] } });
}

async function written(
  text: string,
  { times = 1, id }: { readonly times?: number | undefined; readonly id: unknown },
): Promise<void> {
  for (let at = 0; at < times; at++) {
    if (cancelled.has(id)) return note(`stopped after ${at}`);
    write(text);
    if (times > 1) await new Promise((resolve) => setTimeout(resolve));
  }
}

async function ask(of: { readonly method: string; readonly params: unknown }): Promise<unknown> {
  const { promise, resolve } = Promise.withResolvers<unknown>();
  const id = `asked ${++asked}`;
  answers.set(id, resolve);
  send({ id, ...of });
  return await promise;
}

async function there(path: string): Promise<void> {
  for (;;) {
    try {
      Deno.statSync(path);
      return;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }
}

function textIn(folder: string): string {
  return [...Deno.readDirSync(folder)].map(({ name }) => Deno.readTextFileSync(`${folder}/${name}`))
    .join("").replaceAll("\n", " ");
}

function note(line: string): void {
  Deno.writeTextFileSync(ledger, `${line}\n`, { append: true });
}

function send(message: object): void {
  write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
}

function write(text: string): void {
  const bytes = encoder.encode(text);
  for (let at = 0; at < bytes.length;) at += Deno.stdout.writeSync(bytes.subarray(at));
}

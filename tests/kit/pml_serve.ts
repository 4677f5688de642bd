/**
 * Spawns `pml serve` in a workspace, and connects the SDK's own clients to it over HTTP.
 *
 * @module
 */

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { CLIENT_INFO, type Era } from "./json_rpc.ts";
import { IN_PROCESS, pidOf, type Running, startInProcess } from "./in_process.ts";
import { pmlCommand } from "./pml_command.ts";
import type { ConnectOptions } from "./client.ts";
import { DEADLINE_MS, within } from "./wait.ts";
import type { Workspace } from "./workspace.ts";

/** A running `pml serve`. Its disposal kills it. */
export interface TestServer extends AsyncDisposable {
  readonly url: string;
  readonly token: string;
  readonly pid: number;
  /** Its stderr so far. */
  readonly stderr: string;
  /** Resolves to the exit code. */
  readonly ended: Promise<number>;
  /** Sends a signal. */
  kill(signal: Deno.Signal): void;
  /** Connects a client. */
  connect(
    options?: Pick<ConnectOptions, "era" | "capabilities" | "clientName" | "elicit">,
  ): Promise<HttpClient>;
  /** Sends one request with the token. */
  fetch(init?: RequestInit, path?: string): Promise<Response>;
}

/** A connected client. */
export interface HttpClient extends AsyncDisposable {
  readonly client: Client;
  readonly transport: StreamableHTTPClientTransport;
}

/** The options of `pml serve`. */
export interface ServeOptions {
  /** A file that is loaded before PML, in a separate process. */
  readonly preload?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Whether PML runs as a separate process: for tests of signals, memory and the end. */
  readonly ownProcess?: boolean;
}

/** Starts `pml serve` on a free port, and waits until it listens. */
export async function servePml(
  ws: Workspace,
  args: readonly string[] = [],
  options: ServeOptions = {},
): Promise<TestServer> {
  const child = started(ws, args, options);
  let stderr = "";
  const errors = (async () => {
    for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) stderr += text;
  })();
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const what = () => `pml serve does not listen: ${stderr}`;
  const { value = "" } = await within(reader.read(), { ms: DEADLINE_MS, what });
  if (value === "") throw new Error(what());
  const { url, token: file } = JSON.parse(value) as Record<"url" | "token", string>;
  const token = file.startsWith("/") ? (await Deno.readTextFile(file)).trim() : "";
  const ended = child.status.then(({ code }) => code);
  return {
    url,
    token,
    get pid() {
      return pidOf(child);
    },
    get stderr() {
      return stderr;
    },
    ended,
    kill: (signal) => child.kill(signal),
    connect: (options) => connectHttp({ url, token }, options),
    fetch: (init = {}, path = "") =>
      fetch(new URL(path, url), {
        ...init,
        headers: {
          authorization: `Bearer ${token}`,
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
          ...init.headers as Record<string, string>,
        },
      }),
    [Symbol.asyncDispose]: async () => {
      try {
        child.kill(child.pid === undefined ? "SIGTERM" : "SIGKILL");
      } catch {
        // it has ended
      }
      await Promise.all([ended, errors, reader.cancel()]);
    },
  };
}

/** Starts PML in this process or in a separate one. */
function started(
  ws: Workspace,
  more: readonly string[],
  { preload, env = {}, ownProcess = !IN_PROCESS }: ServeOptions,
): Running {
  const serve = ["serve", "--port", "0", "--json", ...more];
  const place = { cwd: ws.path, env: { ...ws.env, ...env } };
  if (preload === undefined && !ownProcess) return startInProcess({ args: serve, ...place });
  const [program, run = "", ...first] = pmlCommand();
  const before = preload === undefined ? [] : [`--preload=${preload}`];
  return new Deno.Command(program, {
    ...place,
    args: [run, ...before, ...first, ...serve],
    ...{ clearEnv: true, stdin: "null", stdout: "piped", stderr: "piped" },
  }).spawn();
}

/** Connects the SDK's client in either revision. */
export async function connectHttp(
  { url, token }: Pick<TestServer, "url" | "token">,
  { era = "2025-11-25", capabilities, clientName = CLIENT_INFO.name, elicit }: Parameters<
    TestServer["connect"]
  >[0] = {},
): Promise<HttpClient> {
  const asked: Era = era;
  const client = new Client({ ...CLIENT_INFO, name: clientName }, {
    capabilities: capabilities ?? (elicit === undefined ? {} : { elicitation: { form: {} } }),
    versionNegotiation: { mode: asked === "2025-11-25" ? "legacy" : { pin: asked } },
  });
  if (elicit !== undefined) {
    client.setRequestHandler("elicitation/create", async ({ params }) => {
      const { action, content } = await elicit(params as Parameters<typeof elicit>[0]);
      return { action, ...(content === undefined ? {} : { content: { ...content } }) };
    });
  }
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { authorization: `Bearer ${token}` } },
  });
  await client.connect(transport, { timeout: DEADLINE_MS });
  return { client, transport, [Symbol.asyncDispose]: () => client.close() };
}

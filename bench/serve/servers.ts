/**
 * Starts the measured servers: the SDK's own HTTP server, `pml serve`, and other gateways.
 *
 * @module
 */

import { until } from "../../tests/kit/wait.ts";
import { pathOf } from "../measure.ts";
import type { Target } from "./load.ts";

/** The running servers, which end when this is disposed. */
export interface Servers extends AsyncDisposable {
  readonly targets: readonly Target[];
  /** The process id of `pml serve`. */
  readonly pml: number;
}

const BACKEND = ["node", pathOf("bench/serve/backend.mjs")];
const START_MS = 60_000;
/** The other gateways, and the file in `node_modules` that starts each. */
export const PEERS = {
  supergateway: "supergateway/dist/index.js",
  "mcp-proxy": ".bin/mcp-proxy",
  "mcp-hub": "mcp-hub/dist/cli.js",
};

/** Starts all servers. The other gateways must be installed with npm in the folder `peers`. */
export async function startServers(
  { peers, project = pathOf(""), only = "" }: {
    readonly peers?: string | undefined;
    readonly project?: string;
    /** With "pml", starts only `pml serve`. */
    readonly only?: string;
  },
): Promise<Servers> {
  await using stack = new AsyncDisposableStack();
  const makeFolder = async () => {
    const path = await Deno.makeTempDir({ prefix: "pml-bench-" });
    stack.defer(() => Deno.remove(path, { recursive: true }));
    return path;
  };
  // PML ignores a home in its workspace, and would use the home of the user.
  const [folder, home] = [await makeFolder(), await makeFolder()];
  const targets: Target[] = [];
  const start = async (command: readonly string[], env: Record<string, string> = {}) => {
    const child = new Child(command, { cwd: folder, env });
    stack.use(child);
    await child.firstLine;
    return child;
  };
  const deno = [Deno.execPath(), "run", "-A", "--quiet", "--config", pathOf("deno.json")];
  for (const [name, ...more] of only === "pml" ? [] : [["sdk"], ["sdk relay", ...BACKEND]]) {
    const port = await freePort();
    await start([...deno, pathOf("bench/serve/sdk.ts"), `${port}`, ...more]);
    targets.push(...bothRevisions(name ?? "", { url: urlOf(port) }));
  }
  const pml = await start(
    [
      ...deno.slice(0, -1),
      `${project}/deno.json`,
      `${project}/mod.ts`,
      "serve",
      "--port",
      "0",
      "--json",
    ],
    await configurePml(folder, home),
  );
  const { url, token } = JSON.parse(await pml.firstLine);
  targets.push(...bothRevisions("pml", { url, token: (await Deno.readTextFile(token)).trim() }));
  if (peers !== undefined && only !== "pml") {
    targets.push(...await startPeers(start, { peers, folder }));
  }
  const all = stack.move();
  return { targets, pml: pml.pid, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

type Start = (command: readonly string[], env?: Record<string, string>) => Promise<Child>;

async function startPeers(
  start: Start,
  { peers, folder }: { readonly peers: string; readonly folder: string },
): Promise<readonly Target[]> {
  const file = (name: keyof typeof PEERS) => `${peers}/node_modules/${PEERS[name]}`;
  const ports = [await freePort(), await freePort(), await freePort()] as const;
  const [gateway, proxy, hub] = ports;
  const supergateway = await start([
    ...["node", file("supergateway"), "--stdio", BACKEND.join(" ")],
    ...["--outputTransport", "streamableHttp", "--stateful", "--port", `${gateway}`],
    ...["--logLevel", "none"],
  ], { QUIET: "1" });
  const mcpProxy = await start([
    ...["node", file("mcp-proxy"), "--port", `${proxy}`, "--host", "127.0.0.1"],
    ...["--server", "stream", "--", ...BACKEND],
  ], { QUIET: "1" });
  const [command, ...args] = BACKEND;
  const config = { mcpServers: { tiny: { command, args } } };
  await Deno.writeTextFile(`${folder}/mcp.json`, JSON.stringify(config));
  const mcpHub = await start([
    ...["node", file("mcp-hub"), "--port", `${hub}`, "--config", `${folder}/mcp.json`],
  ], { QUIET: "1" });
  for (const [at, child] of [supergateway, mcpProxy, mcpHub].entries()) {
    await until(() => child.isOver || isOpen(ports[at] ?? 0), START_MS);
    if (child.isOver) throw new Error(`${Object.keys(PEERS)[at]} ended before it was ready`);
  }
  await until(() => hasTools(hub), START_MS);
  return [
    { name: "supergateway, 2025-11-25", url: urlOf(gateway), how: "session", tool: "tell" },
    ...bothRevisions("mcp-proxy", { url: urlOf(proxy) }),
    { name: "mcp-hub, HTTP+SSE", url: urlOf(hub), how: "sse", tool: "tiny__tell" },
  ];
}

function bothRevisions(
  name: string,
  more: { readonly url: string; readonly token?: string },
): Target[] {
  return [
    { ...more, name: `${name}, 2026-07-28`, how: "alone", tool: "tell" },
    { ...more, name: `${name}, 2025-11-25`, how: "session", tool: "tell" },
  ];
}

function urlOf(port: number): string {
  return `http://127.0.0.1:${port}/mcp`;
}

/** Writes PML's configuration with one server, without a prefix. Returns PML's variables. */
async function configurePml(folder: string, home: string): Promise<Record<string, string>> {
  const [command, ...args] = BACKEND;
  const config = {
    version: 1,
    permissions: { allow: ["tiny:*"] },
    gateway: { tools_exposure: "full_proxy", prefix: false, meta_tools: [] },
    mcpServers: { tiny: { type: "stdio", command, args } },
  };
  await Deno.writeTextFile(`${folder}/.pml.json`, JSON.stringify(config));
  return {
    PML_HOME: home,
    PML_LOG_LEVEL: "error",
    PML_REGISTRIES: "none",
    PML_TRUST: folder,
  };
}

async function freePort(): Promise<number> {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return await Promise.resolve(listener.addr.port);
}

async function isOpen(port: number): Promise<boolean> {
  try {
    (await Deno.connect({ hostname: "127.0.0.1", port })).close();
    return true;
  } catch {
    return false;
  }
}

/** Returns whether mcp-hub has started its server. */
async function hasTools(port: number): Promise<boolean> {
  const response = await fetch(`http://127.0.0.1:${port}/api/servers`);
  return /"status":"connected"/.test(await response.text());
}

/** A process. Unless it has the variable `QUIET`, it prints a line when it is ready. */
class Child implements AsyncDisposable {
  readonly firstLine: Promise<string>;
  readonly pid: number;
  isOver = false;
  readonly #child: Deno.ChildProcess;

  constructor(
    [program = "", ...args]: readonly string[],
    { cwd, env }: { readonly cwd: string; readonly env: Record<string, string> },
  ) {
    const isQuiet = env.QUIET !== undefined;
    this.#child = new Deno.Command(program, {
      ...{ args, cwd, env, stdin: "null" },
      stdout: isQuiet ? "null" : "piped",
      stderr: isQuiet ? "null" : "inherit",
    }).spawn();
    this.pid = this.#child.pid;
    void this.#child.status.then(() => this.isOver = true);
    this.firstLine = isQuiet ? Promise.resolve("") : this.#firstLine();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      this.#child.kill("SIGTERM");
    } catch {
      // the process has already ended
    }
    await this.#child.status;
  }

  async #firstLine(): Promise<string> {
    const reader = this.#child.stdout.getReader();
    const { value } = await reader.read();
    const line = new TextDecoder().decode(value);
    if (line === "") throw new Error("A server ended before it was ready");
    void drain(reader);
    return line;
  }
}

async function drain(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  while (!(await reader.read()).done);
}

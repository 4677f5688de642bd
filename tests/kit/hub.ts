/**
 * Hubs, and their publishers.
 *
 * @module
 */

import { integrityOf } from "../../src/core/hash.ts";
import { HUB } from "./pml_command.ts";
import { serveHub, type Serving } from "./registry_contract.ts";
import { runPml } from "./run.ts";
import { makeWorkspace, type Workspace } from "./workspace.ts";

/** The response of a hub. */
export interface HubReply {
  readonly status: number;
  // deno-lint-ignore no-explicit-any
  readonly body: any;
  readonly headers: Headers;
}

/** A manifest and its code. */
export interface Offer {
  readonly manifest: Record<string, unknown>;
  readonly code?: string;
}

/** A hub in a new folder. */
export interface TestHub extends AsyncDisposable {
  readonly ws: Workspace;
  /** The running hub. */
  readonly serving: Serving;
  readonly url: string;
  /** Runs a command of the hub. */
  readonly run: (...args: readonly string[]) => ReturnType<typeof runPml>;
  /** Creates a key for an organisation; `--client` creates one for clients. */
  readonly key: (
    owner: string,
    ...more: readonly string[]
  ) => Promise<{ readonly id: string; readonly key: string }>;
  /** Starts another hub on the same store. */
  readonly again: (...args: readonly string[]) => Promise<Serving>;
}

/** Starts a hub. */
export function spawnHub(...args: readonly string[]): Promise<TestHub> {
  return startHub({ args });
}

/** Starts a hub with additional variables. */
export function spawnHubWith(
  env: Readonly<Record<string, string>>,
  ...args: readonly string[]
): Promise<TestHub> {
  return startHub({ env, args });
}

/** The options of a hub. */
export interface HubOptions {
  /** Additional variables. */
  readonly env?: Readonly<Record<string, string>>;
  /** The arguments after `serve`. */
  readonly args?: readonly string[];
  /** Whether it runs as a separate process: for tests of its memory, of kills and of two hubs. */
  readonly ownProcess?: boolean;
}

/** Starts a hub with options. */
export async function startHub(
  { env = {}, args = [], ...options }: HubOptions,
): Promise<TestHub> {
  const ws = await makeWorkspace({ env });
  const again = (...more: readonly string[]) => serveHub(ws, [...args, ...more], options);
  const serving = await again();
  const run = (...words: readonly string[]) => runPml(ws, words, { command: HUB });
  const key = async (owner: string, ...more: readonly string[]) =>
    JSON.parse((await run("key", "add", owner, ...more, "--json")).stdout);
  return {
    ...{ ws, serving, run, key, again, url: `http://127.0.0.1:${serving.port}/mcp` },
    [Symbol.asyncDispose]: async () => {
      await serving[Symbol.asyncDispose]();
      await ws[Symbol.asyncDispose]();
    },
  };
}

/** Returns a module with a tool that greets. */
export function moduleOffer(fqdn: string, version: string, text = "hello "): Offer {
  // A capability has a tool of the same name.
  const tool = fqdn.split(":")[1] ?? "greet";
  const code = `export const __meta__ = { name: "greeter", tools: { ${tool}: {} } };
export const ${tool} = ({ who }) => ${JSON.stringify(text)} + who;\n`;
  const permissions = { read: [], write: [], net: [], run: [], env: [] };
  const tools = [{ name: tool, inputSchema: { type: "object" }, permissions }];
  return {
    code,
    manifest: {
      ...{ fqdn, type: "deno", version, description: "Greets", permissions, tools },
      ...{ env_required: [], warnings: [], routing: "local" },
      integrity: integrityOf(new TextEncoder().encode(code)),
    },
  };
}

/** Returns a server of a package. */
export function packageOffer(fqdn: string, version: string, more: object = {}): Offer {
  return {
    manifest: {
      ...{ fqdn, type: "stdio", version, description: `Does ${fqdn}` },
      install: { command: "npx", args: ["-y", `some-server@${version}`] },
      ...{ tools: [], env_required: [], warnings: [], routing: "local", ...more },
    },
  };
}

/** Sends a request with a key, and returns the answer. */
export async function sendRequest(
  url: string,
  { method, key, body, headers = {}, signal }: {
    readonly method: string;
    readonly key?: string | undefined;
    readonly body?: unknown;
    readonly headers?: Readonly<Record<string, string>>;
    readonly signal?: AbortSignal;
  },
): Promise<HubReply> {
  const response = await fetch(url, {
    method,
    headers: {
      ...key !== undefined && { authorization: `Bearer ${key}` },
      ...body !== undefined && { "content-type": "application/json" },
      ...headers,
    },
    ...body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) },
    ...{ signal: signal ?? null, redirect: "manual" },
  });
  const text = await response.text();
  return { status: response.status, body: parsed(text), headers: response.headers };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text; // the code of a module
  }
}

/** Publishes an offer under its own name. */
export async function put(url: string, key: string | undefined, offer: Offer): Promise<HubReply> {
  const { fqdn, version } = offer.manifest;
  return await sendRequest(`${url}/${fqdn}@${version}`, { method: "PUT", key, body: offer });
}

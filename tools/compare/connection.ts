/**
 * Connects the SDK's client to a process, bounded in time and memory, and reads all that it shows
 * as it came.
 *
 * @module
 */

import { pathToFileURL } from "node:url";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

/** The revisions of MCP that are compared: the last with a handshake, and the one without. */
export const ERAS = ["2025-11-25", "2026-07-28"] as const;

/** One of these revisions. */
export type Era = typeof ERAS[number];

/** A program to start, and its folder. */
export interface Start {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

/** An entry of a list, or a result, as it came. */
export type Json = { readonly [key: string]: unknown };

/** The lists that are compared, and what names and orders an entry of each. */
export const LISTS = {
  tools: "name",
  prompts: "name",
  resources: "uri",
  resourceTemplates: "uriTemplate",
} as const;

/** The name of one of these lists. */
export type ListName = keyof typeof LISTS;

const METHODS: Readonly<Record<ListName, string>> = {
  tools: "tools/list",
  prompts: "prompts/list",
  resources: "resources/list",
  resourceTemplates: "resources/templates/list",
};

/** Seconds that one process may live, and bytes that it may write to. */
const LIFE_S = 600;
const MEMORY = 4 * 1024 ** 3;
const MAX_PAGES = 50;
const REQUEST_MS = 120_000;

/** Aborts to prevent further starts. */
export const STOPPING = new AbortController();

/** All capabilities of a client, because servers show some tools only for these. */
const ABLE = { roots: {}, elicitation: { form: {} }, sampling: {} };

/** Accepts any value, so that the SDK does not change the results. */
const ANY = {
  "~standard": {
    version: 1 as const,
    vendor: "pml",
    validate: (value: unknown) => ({ value: value as Json }),
  },
};

/** A connected process. Disposing of it disconnects and ends the process. */
export interface Connection extends AsyncDisposable {
  /** Reads a list, all pages of it; undefined where the server has no such list. */
  list(name: ListName): Promise<readonly Json[] | undefined>;
  /** Calls a tool. Returns the result, or the error as a value. */
  call(name: string, args: Json): Promise<Json>;
}

/** Connects in one era. Throws with the stderr of the process. */
export async function connect(start: Start, era: Era): Promise<Connection> {
  const { command, args } = bounded(start);
  const transport = new StdioClientTransport({
    ...{ command, args, cwd: start.cwd, env: { ...start.env }, stderr: "pipe" },
  });
  let said = "";
  transport.stderr?.on("data", (piece: Uint8Array) => {
    said = (said + new TextDecoder().decode(piece)).slice(-2000);
  });
  const client = new Client({ name: "compare", version: "1" }, {
    capabilities: ABLE,
    versionNegotiation: { mode: era === "2025-11-25" ? "legacy" : { pin: era } },
  });
  client.setRequestHandler(
    "roots/list",
    () => ({ roots: [{ uri: pathToFileURL(start.cwd).href, name: "workspace" }] }),
  );
  client.setRequestHandler("elicitation/create", () => ({ action: "decline" }));
  client.setRequestHandler("sampling/createMessage", () => ({
    ...{ role: "assistant", model: "none", content: { type: "text", text: "none" } },
  }));
  try {
    await client.connect(transport, { timeout: REQUEST_MS });
  } catch (cause) {
    await transport.close();
    throw new Error(`${messageOf(cause)}\n${said}`.trim(), { cause });
  }
  const request = async (method: string, params: Json) =>
    await client.request({ method, params }, ANY, { timeout: REQUEST_MS }) as Json;
  return {
    list: (name) => pagesOf(name, { client, request }),
    call: async (name, args) => {
      try {
        return await request("tools/call", { name, arguments: args });
      } catch (error) {
        return { error: messageOf(error) };
      }
    },
    [Symbol.asyncDispose]: () => client.close(),
  };
}

/** Returns the text of whatever was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Returns the command under bounds of time and memory, where the system has programs for these. */
export function bounded({ command, args }: Pick<Start, "command" | "args">): {
  readonly command: string;
  readonly args: string[];
} {
  STOPPING.signal.throwIfAborted();
  if (Deno.build.os !== "linux") return { command, args: [...args] };
  const bounds = ["-k", "5", `${LIFE_S}`, "prlimit", `--data=${MEMORY}`];
  return { command: "timeout", args: [...bounds, command, ...args] };
}

async function pagesOf(name: ListName, { client, request }: {
  readonly client: Client;
  readonly request: (method: string, params: Json) => Promise<Json>;
}): Promise<readonly Json[] | undefined> {
  const able = client.getServerCapabilities() ?? {};
  if (!(name === "resourceTemplates" ? "resources" in able : name in able)) return undefined;
  const all: Json[] = [];
  let cursor: unknown;
  for (let page = 0; page < MAX_PAGES; page++) {
    const params = cursor === undefined ? {} : { cursor };
    const answer = await request(METHODS[name], params).catch((error) => {
      // Servers often offer resources and know no templates.
      if (/method not found/i.test(messageOf(error))) return { [name]: [] } as Json;
      throw error;
    });
    all.push(...answer[name] as Json[]);
    cursor = answer.nextCursor;
    if (cursor === undefined || cursor === null) return all;
  }
  throw new Error(`${METHODS[name]} has more than ${MAX_PAGES} pages`);
}

/**
 * Connects the client of the MCP SDK to a process with limits on time and memory, and reads its lists
 * and results unchanged.
 *
 * @module
 */

import { pathToFileURL } from "node:url";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

/** The compared revisions of MCP: the last with a handshake, and the first without. */
export const ERAS = ["2025-11-25", "2026-07-28"] as const;

/** One of the compared revisions. */
export type Era = typeof ERAS[number];

/** A program to start, with its folder and variables. */
export interface Start {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

/** An unchanged entry of a list, or an unchanged result. */
export type Json = { readonly [key: string]: unknown };

/** The compared lists, each with the member that identifies its entries. */
export const LISTS = {
  tools: "name",
  prompts: "name",
  resources: "uri",
  resourceTemplates: "uriTemplate",
} as const;

/** The name of a compared list. */
export type ListName = keyof typeof LISTS;

const METHODS: Readonly<Record<ListName, string>> = {
  tools: "tools/list",
  prompts: "prompts/list",
  resources: "resources/list",
  resourceTemplates: "resources/templates/list",
};

/** The time limit of a process in seconds, and its limit on memory in bytes. */
const MAX_LIFE_S = 600;
const MAX_MEMORY = 4 * 1024 ** 3;
const MAX_PAGES = 50;
const REQUEST_MS = 120_000;

/** Aborted when no more processes may start. */
export const STOPPING = new AbortController();

/** Client capabilities for which servers list additional tools. */
const CAPABILITIES = { roots: {}, elicitation: { form: {} }, sampling: {} };

/** Accepts any value, so that the SDK does not change the results. */
const ANY_SCHEMA = {
  "~standard": {
    version: 1 as const,
    vendor: "pml",
    validate: (value: unknown) => ({ value: value as Json }),
  },
};

/** A connected process, which ends when it is disposed. */
export interface Connection extends AsyncDisposable {
  /** Reads all pages of a list. Returns undefined if the server does not have the list. */
  list(name: ListName): Promise<readonly Json[] | undefined>;
  /** Calls a tool. Returns the result, or the error as a value. */
  call(name: string, args: Json): Promise<Json>;
}

/** Connects with one revision. Throws an error that contains the stderr of the process. */
export async function connect(start: Start, era: Era): Promise<Connection> {
  const { command, args } = limitedCommand(start);
  const transport = new StdioClientTransport({
    ...{ command, args, cwd: start.cwd, env: { ...start.env }, stderr: "pipe" },
  });
  let stderrText = "";
  transport.stderr?.on("data", (piece: Uint8Array) => {
    stderrText = (stderrText + new TextDecoder().decode(piece)).slice(-2000);
  });
  const client = new Client({ name: "compare", version: "1" }, {
    capabilities: CAPABILITIES,
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
    throw new Error(`${messageOf(cause)}\n${stderrText}`.trim(), { cause });
  }
  const request = async (method: string, params: Json) =>
    await client.request({ method, params }, ANY_SCHEMA, { timeout: REQUEST_MS }) as Json;
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

/** Returns the message of a thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Returns the command with limits on time and memory; on Linux only. */
export function limitedCommand({ command, args }: Pick<Start, "command" | "args">): {
  readonly command: string;
  readonly args: string[];
} {
  STOPPING.signal.throwIfAborted();
  if (Deno.build.os !== "linux") return { command, args: [...args] };
  const limits = ["-k", "5", `${MAX_LIFE_S}`, "prlimit", `--data=${MAX_MEMORY}`];
  return { command: "timeout", args: [...limits, command, ...args] };
}

async function pagesOf(name: ListName, { client, request }: {
  readonly client: Client;
  readonly request: (method: string, params: Json) => Promise<Json>;
}): Promise<readonly Json[] | undefined> {
  const capabilities = client.getServerCapabilities() ?? {};
  if (!(name === "resourceTemplates" ? "resources" in capabilities : name in capabilities)) {
    return undefined;
  }
  const items: Json[] = [];
  let cursor: unknown;
  for (let page = 0; page < MAX_PAGES; page++) {
    const params = cursor === undefined ? {} : { cursor };
    const answer = await request(METHODS[name], params).catch((error) => {
      // Many servers with resources do not implement templates.
      if (/method not found/i.test(messageOf(error))) return { [name]: [] } as Json;
      throw error;
    });
    items.push(...answer[name] as Json[]);
    cursor = answer.nextCursor;
    if (cursor === undefined || cursor === null) return items;
  }
  throw new Error(`${METHODS[name]} has more than ${MAX_PAGES} pages`);
}

/**
 * Connects the SDK's own client to a spawned PML, in either revision, over the watched pipes.
 *
 * @module
 */

import { Client, type Transport } from "@modelcontextprotocol/client";
import { CLIENT_INFO, type Era, type Message } from "./json_rpc.ts";
import { RawStdio, type RawStdioOptions } from "./raw_stdio.ts";
import { DEADLINE_MS } from "./wait.ts";
import type { Workspace } from "./workspace.ts";

/** The user's answer to a question: the result of `elicitation/create`. */
export interface ElicitResult {
  readonly action: "accept" | "decline" | "cancel";
  readonly content?: Readonly<Record<string, string | number | boolean | string[]>>;
}

/** The options of a connection. */
export interface ConnectOptions extends Omit<RawStdioOptions, "answer" | "onMessage"> {
  /** The client's name in `clientInfo`. */
  readonly clientName?: string;
  /** Answers a question to the user; without it the client cannot ask. */
  readonly elicit?: (params: {
    readonly message: string;
    readonly requestedSchema?: unknown;
  }) => ElicitResult | Promise<ElicitResult>;
}

/**
 * A connected client, and the pipes under it. Its disposal closes stdin and kills remaining
 * processes.
 */
export interface Connection extends AsyncDisposable {
  readonly client: Client;
  readonly raw: RawStdio;
}

/** Spawns PML in a workspace and connects the SDK's client to it. */
export async function connect(
  workspace: Workspace,
  { elicit, clientName = CLIENT_INFO.name, ...options }: ConnectOptions = {},
): Promise<Connection> {
  const era: Era = options.era ?? "2025-11-25";
  const client = new Client({ ...CLIENT_INFO, name: clientName }, {
    capabilities: options.capabilities ??
      (elicit === undefined ? {} : { elicitation: { form: {} } }),
    versionNegotiation: { mode: era === "2025-11-25" ? "legacy" : { pin: era } },
  });
  if (elicit !== undefined) {
    client.setRequestHandler("elicitation/create", async ({ params }) => {
      const { action, content } = await elicit(params);
      return { action, ...(content === undefined ? {} : { content: { ...content } }) };
    });
  }
  const { raw, transport } = watched(workspace, options);
  try {
    await client.connect(transport, { timeout: DEADLINE_MS });
  } catch (error) {
    await raw[Symbol.asyncDispose]();
    throw new Error(`The client cannot connect; stderr: ${raw.stderr}`, { cause: error });
  }
  return {
    client,
    raw,
    [Symbol.asyncDispose]: async () => {
      await client.close();
      await raw[Symbol.asyncDispose]();
    },
  };
}

/** Creates the SDK's transport on the watched pipes, so that their checks also apply here. */
function watched(
  workspace: Workspace,
  options: RawStdioOptions,
): { readonly raw: RawStdio; readonly transport: Transport } {
  const transport: Transport = {
    start: () => Promise.resolve(),
    send: async (message) => {
      if ("id" in message && "method" in message) raw.noteAsked(message.id);
      await raw.sendJson(message);
    },
    close: async () => {
      await raw.close();
      await raw.ended;
    },
  };
  const onMessage = (message: Message) => transport.onmessage?.(message as never);
  const raw = new RawStdio(workspace, { ...options, onMessage });
  raw.ended.then(() => transport.onclose?.());
  return { raw, transport };
}

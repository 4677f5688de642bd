/**
 * A client of a PML whose servers declare extensions that PML does not support.
 *
 * @module
 */

import { makeAttackWorkspace } from "./attacks/stage.ts";
import { textOf } from "./attacks/oracles.ts";
import type { Era, Message } from "./kit/json_rpc.ts";
import { denoServer } from "./kit/pml_command.ts";
import { RawStdio, type RawStdioOptions } from "./kit/raw_stdio.ts";
import { until } from "./kit/wait.ts";

export const NOTES = "com.example/notes";
export const DRAWINGS = "com.example/drawings";

type Args = Record<string, unknown>;

/** The servers, the rules, and the client. */
export interface ExtensionSceneOptions extends RawStdioOptions {
  /** The arguments of each server: the extensions that it declares. */
  readonly servers: Readonly<Record<string, readonly string[]>>;
  readonly limits?: Readonly<Record<string, number>>;
  readonly rules?: { readonly allow?: readonly string[]; readonly deny?: readonly string[] };
}

/** Opens the client, and starts all servers. */
export async function extensionScene(
  era: Era,
  { servers, limits = {}, rules = {}, ...client }: ExtensionSceneOptions,
) {
  const names = Object.keys(servers);
  const { allow = [], deny = [] } = rules;
  const tools = ["echo", "tell", "ask", "heard", "able"];
  const ws = await makeAttackWorkspace({
    limits: { first_list_ms: 60_000, ...limits },
    pml: {
      version: 1,
      gateway: { tools_exposure: "full_proxy" },
      permissions: {
        allow: [...names.flatMap((name) => tools.map((tool) => `${name}:${tool}`)), ...allow],
        deny,
      },
      mcpServers: Object.fromEntries(
        Object.entries(servers).map(([name, extensions]) => {
          return [name, denoServer("tests/kit/extension_server.ts", ...extensions)];
        }),
      ),
    },
  });
  const pml = new RawStdio(ws, { era, ...client });
  const call = (name: string, args: Args = {}): Promise<Message> => pml.callTool(name, args);
  await pml.open();
  // A server declares its extensions when it starts.
  for (const name of names) {
    await until(async () => {
      const { result } = await call(`${name}__echo`);
      return result !== undefined && !result.isError;
    });
  }
  return {
    pml,
    ws,
    call,
    /** Calls a tool and parses the JSON text of its result. */
    valueOf: async (name: string, args: Args = {}): Promise<unknown> =>
      JSON.parse(textOf(await call(name, args))),
    [Symbol.asyncDispose]: async () => {
      await pml[Symbol.asyncDispose]();
      await ws[Symbol.asyncDispose]();
    },
  };
}

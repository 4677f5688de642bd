/**
 * The scene of the tests of calls over HTTP: a `pml serve`, and a server that executes the script
 * in each call.
 *
 * @module
 */

import { readFile } from "node:fs/promises";
import { makeAttackWorkspace, type SceneOptions } from "./attacks/stage.ts";
import { DoorClient, type DoorClientOptions } from "./kit/door_client.ts";
import type { Message } from "./kit/json_rpc.ts";
import { servePml, type TestServer } from "./kit/pml_serve.ts";
import { until } from "./kit/wait.ts";
import type { Workspace } from "./kit/workspace.ts";
import { codeIn, type Said, scriptServer, writeConfig } from "./script_scene.ts";

export interface ServeScene extends AsyncDisposable {
  readonly ws: Workspace;
  readonly served: TestServer;
  readonly client: DoorClient;
  /** Connects another client of the newest revision. */
  open(options?: DoorClientOptions): Promise<DoorClient>;
  /** Calls the tool, optionally with more params. */
  call(said?: Said, more?: object): Promise<Message>;
  /** Lets a client call until it gets a result. */
  warm(client: DoorClient): Promise<void>;
  /** Returns the lines that the server has written so far. */
  ledger(): Promise<readonly string[]>;
}

/** Creates the scene. The tool was called before. */
export async function serveScene(
  { config, env = {}, ...options }: SceneOptions & { readonly config?: object } = {},
): Promise<ServeScene> {
  const mcpServers = { s: scriptServer() };
  const pml = { version: 1, permissions: { allow: ["s:*"] }, mcpServers };
  const ws = await makeAttackWorkspace({ pml, ...options });
  if (config !== undefined) await writeConfig(ws, config);
  const served = await servePml(ws, [], { env, ownProcess: options.ownProcess });
  const open = (more: DoorClientOptions = {}) =>
    DoorClient.open(served, { era: "2026-07-28", ...more });
  const client = await open();
  const warm = (one: DoorClient) =>
    until(async () => {
      const answer = await one.request("tools/call", { name: "s__run", arguments: {} });
      return answer.result !== undefined && codeIn(answer) === undefined;
    });
  await warm(client);
  return {
    ...{ ws, served, client, open, warm },
    call: (said = {}, more = {}) =>
      client.request("tools/call", { name: "s__run", arguments: said, ...more }),
    ledger: async () => (await readFile(ws.file("ledger"), "utf8")).split("\n").filter(Boolean),
    [Symbol.asyncDispose]: async () => {
      await served[Symbol.asyncDispose]();
      await ws[Symbol.asyncDispose]();
    },
  };
}

/**
 * The scene of the tests of calls over HTTP that run at once: a `pml serve` with a server that does
 * what each call says, of which is seen whether a call ran at once.
 *
 * @module
 */

import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { makeScenery, type SceneOptions } from "./attacks/stage.ts";
import { DoorClient, type DoorClientOptions } from "./kit/door_client.ts";
import type { Message } from "./kit/json_rpc.ts";
import { repoFile } from "./kit/pml_command.ts";
import { type Served, servePml } from "./kit/pml_serve.ts";
import { until } from "./kit/wait.ts";
import type { Workspace } from "./kit/workspace.ts";
import { type Said, scriptServer, writeConfig } from "./quick_scene.ts";

/** The scene. */
export interface ServeScene extends AsyncDisposable {
  readonly ws: Workspace;
  readonly served: Served;
  readonly client: DoorClient;
  /** Connects another client of the newest revision. */
  open(options?: DoorClientOptions): Promise<DoorClient>;
  /** Calls the tool, with more params if there are some. */
  call(said?: Said, more?: object): Promise<Message>;
  /** Has a client call until a call of it runs at once. */
  warm(client: DoorClient): Promise<void>;
  /** Returns which calls ran at once so far: `+` for each that did, `-` for each that did not. */
  ways(): Promise<string>;
  /** Returns what the server noted so far, a line each. */
  ledger(): Promise<readonly string[]>;
}

/** Makes the scene. Calls of the person run at once already. */
export async function serveScene(
  { config, env = {}, ...options }: SceneOptions & { readonly config?: object } = {},
): Promise<ServeScene> {
  const mcpServers = { s: scriptServer() };
  const pml = { version: 1, permissions: { allow: ["s:*"] }, mcpServers };
  const ws = await makeScenery({ pml, ...options });
  if (config !== undefined) await writeConfig(ws, config);
  const file = join(ws.root, "quick");
  await writeFile(file, "");
  const served = await servePml(ws, [], {
    preload: repoFile("tests/kit/quick_watch.ts"),
    env: { ...env, QUICK_FILE: file },
  });
  const open = (more: DoorClientOptions = {}) =>
    DoorClient.open(served, { era: "2026-07-28", ...more });
  const client = await open();
  const ways = () => readFile(file, "utf8");
  const warm = (one: DoorClient) =>
    until(async () => {
      const before = await ways();
      await one.request("tools/call", { name: "s__run", arguments: {} });
      return (await ways()).slice(before.length) === "+";
    });
  await warm(client);
  return {
    ...{ ws, served, client, open, ways, warm },
    call: (said = {}, more = {}) =>
      client.request("tools/call", { name: "s__run", arguments: said, ...more }),
    ledger: async () => (await readFile(ws.file("ledger"), "utf8")).split("\n").filter(Boolean),
    [Symbol.asyncDispose]: async () => {
      await served[Symbol.asyncDispose]();
      await ws[Symbol.asyncDispose]();
    },
  };
}

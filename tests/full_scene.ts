/**
 * The scene of the tests of pass-through: servers of both revisions with all features of MCP.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import process from "node:process";
import { makeScene, type Scene, type SceneOptions } from "./attacks/stage.ts";
import type { Era, Json, Message } from "./kit/json_rpc.ts";
import { repoFile } from "./kit/pml_command.ts";
import type { RawStdio } from "./kit/raw_stdio.ts";
import { until } from "./kit/wait.ts";
import type { Workspace } from "./kit/workspace.ts";

/** Servers of both revisions. */
export const KINDS = ["legacy", "modern"] as const;
/** The capabilities of a client that answers questions and samples. */
export const ALL_ABLE = { elicitation: { form: {} }, sampling: {} };

/** Defines the server with all features. Its ledger is next to the workspace file. */
export function full(kind: string, name = kind): Record<string, unknown> {
  const script = repoFile("tests/kit/full_server.ts");
  const config = repoFile("deno.json");
  const args = ["run", "-A", "--quiet", `--config=${config}`, script, kind, `./${name}.ledger`];
  // The tests use one cache of Deno.
  return { command: process.execPath, args, env: { DENO_DIR: "${DENO_DIR}" } };
}

/** Creates a workspace with servers of both revisions, whose tools are allowed, and a PML in it. */
export async function sceneOf(
  era: Era,
  { rules = {}, servers = { legacy: full("legacy"), modern: full("modern") }, ...options }:
    & SceneOptions
    & {
      readonly rules?: Readonly<Record<string, readonly string[]>>;
      readonly servers?: Readonly<Record<string, unknown>>;
    } = {},
): Promise<Scene> {
  const allow = Object.keys(servers).map((name) => `${name}:*`);
  // A list that does not wait for a slow server would change once more when that server has
  // started.
  const limits = { first_list_ms: 60_000, ...options.limits };
  const pml = { version: 1, permissions: { allow, ...rules }, mcpServers: servers };
  return await makeScene({ era, pml, ...options, limits });
}

/** Reads the ledger of a server, a line for each entry. */
export async function ledgerOf(ws: Workspace, name: string): Promise<readonly string[]> {
  const text = await readFile(ws.file(`${name}.ledger`), "utf8").catch(() => "");
  return text.split("\n").filter((line) => line !== "");
}

/** Requests a list until it has at least this number of items: slow servers are listed later. */
export async function listed(
  pml: RawStdio,
  method: string,
  { key, least = 0 }: { readonly key: string; readonly least?: number },
): Promise<readonly Json[]> {
  let items: readonly Json[] = [];
  await until(async () => {
    const { result, error } = await pml.request(method, {});
    assert.equal(error, undefined);
    items = result?.[key] as unknown as readonly Json[];
    return items.length >= least;
  });
  return items;
}

/** Calls a tool through the meta-tool. */
export async function call(pml: RawStdio, id: string, args = {}): Promise<Message> {
  return await pml.callTool("call", { tool: id, arguments: args });
}

/** Asserts that the log messages of both servers reach their client, from the level `info` on. */
export async function assertLogged(pml: RawStdio): Promise<void> {
  const isOlder = pml.era === "2025-11-25";
  for (const kind of KINDS) {
    const levels = () =>
      pml.messages.filter(({ method, params }) =>
        method === "notifications/message" && params?.logger === `${kind}/deep`
      ).map(({ params }) => params?.level);
    const _meta = isOlder ? {} : { "io.modelcontextprotocol/logLevel": "info" };
    const params = { name: "call", arguments: { tool: `${kind}:log`, arguments: {} }, _meta };
    const answer = await pml.request("tools/call", params);
    assert.deepEqual(answer.error, undefined);
    assert.deepEqual(answer.result?.isError ?? null, null, JSON.stringify(answer.result));
    await until(() => levels().length >= 2);
    assert.deepEqual(levels(), ["info", "error"]);
  }
}

/**
 * The scene of the tests of calls: a PML, and a server that executes the script in each call. A
 * call can be repeated with a `_meta` of the client, which must not change its answer.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { makeAttackWorkspace, type Scene, type SceneOptions } from "./attacks/stage.ts";
import type { Era, Json, Message } from "./kit/json_rpc.ts";
import { repoFile } from "./kit/pml_command.ts";
import { RawStdio } from "./kit/raw_stdio.ts";
import type { Script } from "./kit/script_server.ts";
import { until } from "./kit/wait.ts";
import type { Workspace } from "./kit/workspace.ts";

/** A `_meta` of a client, which does not change the answer. */
export const WITH_META = { _meta: { "claudecode/toolUseId": "toolu_1" } };
const RUN = ["s__run", {}] as const;

/** The script for the server, with arguments of any name. */
export type Said = Script & { readonly [name: string]: unknown };

export interface ScriptScene extends Scene {
  call(said?: Said, tool?: string): Promise<Message>;
  /** Calls a tool with a `_meta` of the client. */
  callWithMeta(said?: Said, tool?: string): Promise<Message>;
  /** Returns the lines that the server has written so far. */
  ledger(): Promise<readonly string[]>;
}

/** Options of the scene. */
export interface ScriptOptions extends SceneOptions {
  readonly rules?: object;
  /** More keys of the server's definition. */
  readonly server?: object;
  /** The user's `config.yaml`. */
  readonly config?: object;
  /**
   * The first calls, each repeated until it returns a result; by default `run` without arguments.
   */
  readonly warm?: readonly (readonly [tool: string, said: Said])[];
}

/** Defines the server. */
export function scriptServer(more: object = {}): Record<string, unknown> {
  const args = ["run", "-A", "--no-config", "--quiet", repoFile("tests/kit/script_server.ts")];
  // The tests use one cache of Deno, so that each start compiles nothing.
  const env = { DENO_DIR: "${DENO_DIR}" };
  return { command: Deno.execPath(), args: [...args, "./ledger"], env, ...more };
}

/** Creates the scene. The named tools were called before. */
export async function scriptScene(
  era: Era = "2025-11-25",
  { rules = { allow: ["s:*"] }, server = {}, config, warm = [RUN], ...options }: ScriptOptions = {},
): Promise<ScriptScene> {
  const pml = { version: 1, permissions: rules, mcpServers: { s: scriptServer(server) } };
  const ws = await makeAttackWorkspace({ pml, ...options });
  if (config !== undefined) await writeConfig(ws, config);
  const raw = new RawStdio(ws, { ...options, era });
  const scene = sceneOf(ws, raw);
  try {
    await raw.open();
    await warmUp(scene, warm);
    return scene;
  } catch (error) {
    await scene[Symbol.asyncDispose]();
    throw error;
  }
}

/** Calls tools until each returns a result: a new tool is pinned first. */
export async function warmUp(
  { call }: ScriptScene,
  warm: NonNullable<ScriptOptions["warm"]> = [RUN],
): Promise<void> {
  for (const [tool, said] of warm) {
    await until(async () => codeIn(await call(said, tool)) === undefined);
  }
}

function sceneOf(ws: Workspace, pml: RawStdio): ScriptScene {
  return {
    ...{ ws, pml },
    call: (said = {}, tool = "s__run") =>
      pml.request("tools/call", { name: tool, arguments: said }),
    callWithMeta: (said = {}, tool = "s__run") =>
      pml.request("tools/call", { name: tool, arguments: said, ...WITH_META }),
    ledger: async () => {
      const text = await readFile(ws.file("ledger"), "utf8").catch(() => "");
      return text.split("\n").filter((line) => line !== "");
    },
    [Symbol.asyncDispose]: async () => {
      await pml[Symbol.asyncDispose]();
      await ws[Symbol.asyncDispose]();
    },
  };
}

/** Writes the user's `config.yaml`; JSON is YAML. */
export async function writeConfig(ws: Workspace, config: object): Promise<void> {
  await writeFile(join(ws.home, "config.yaml"), JSON.stringify(config));
}

/** A script that asks the client a question. */
export const ASK: Said = {
  steps: [{
    ask: {
      method: "elicitation/create",
      params: { message: "Who?", requestedSchema: { type: "object", properties: {} } },
    },
  }],
};

/** Returns a step that writes a progress notification. */
export function told(progress: number): { readonly write: string } {
  const params = `"progressToken":$TOKEN,"progress":${progress}`;
  return { write: `{"jsonrpc":"2.0","method":"notifications/progress","params":{${params}}}` };
}

/** Returns a script that writes the answer of the call. */
export function answers(members: string): Said {
  return { silent: true, steps: [{ write: `{"jsonrpc":"2.0","id":$ID,${members}}` }] };
}

/** Returns an answer without its id. */
export function bare({ id: _, ...message }: Message): Omit<Message, "id"> {
  return message;
}

/** Returns the code of PML's error in an answer; undefined if it has none. */
export function codeIn({ result, error }: Message): string | undefined {
  const said = (result?.structuredContent as Json | undefined)?.error?.code;
  return (said ?? (error?.data as Json | undefined)?.code) as string | undefined;
}

/** Calls with a `_meta` until the answer matches: the next call without one must match, too. */
export async function bothSay(
  { callWithMeta, call }: ScriptScene,
  says: (answer: Message) => boolean,
  said?: Said,
): Promise<void> {
  let first: Message | undefined;
  await until(async () => says(first = await callWithMeta(said)));
  assert.deepEqual(bare(await call(said)), bare(first as unknown as Message));
}

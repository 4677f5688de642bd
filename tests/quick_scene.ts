/**
 * The scene of the tests of calls that run at once: a server that does what each call says, and a
 * PML of which is seen whether a call ran at once. The same call with a `_meta` of its own always
 * passes the gates, so that both ways can be compared.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { makeScenery, type Scene, type SceneOptions } from "./attacks/stage.ts";
import type { Era, Json, Message } from "./kit/json_rpc.ts";
import { pmlCommand, repoFile } from "./kit/pml_command.ts";
import { RawStdio } from "./kit/raw_stdio.ts";
import type { Script } from "./kit/script_server.ts";
import { until } from "./kit/wait.ts";
import type { Workspace } from "./kit/workspace.ts";

/** What a request has that always passes the gates. */
export const GATES = { _meta: { "claudecode/toolUseId": "toolu_1" } };
const RUN = ["s__run", {}] as const;

/** What a call says to the server, beside arguments of any name. */
export type Said = Script & { readonly [name: string]: unknown };

/** The scene. */
export interface QuickScene extends Scene {
  /** Calls a tool; it has to run at once. */
  quick(said?: Said, tool?: string): Promise<Message>;
  /** Calls a tool through the gates. */
  gated(said?: Said, tool?: string): Promise<Message>;
  /** Calls a tool, however it runs. */
  call(said?: Said, tool?: string): Promise<Message>;
  /** Returns which calls ran at once so far: `+` for each that did, `-` for each that did not. */
  ways(): Promise<string>;
  /** Returns what the server noted so far, a line each. */
  ledger(): Promise<readonly string[]>;
}

/** How the scene is made. */
export interface QuickOptions extends SceneOptions {
  readonly rules?: object;
  /** More of the server's definition. */
  readonly server?: object;
  /** The person's `config.yaml`. */
  readonly config?: object;
  /** What is called until it runs at once; `run` without arguments if nothing else is said. */
  readonly warm?: readonly (readonly [tool: string, said: Said])[];
}

/** Defines the server. */
export function scriptServer(more: object = {}): Record<string, unknown> {
  const args = ["run", "-A", "--no-config", "--quiet", repoFile("tests/kit/script_server.ts")];
  return { command: Deno.execPath(), args: [...args, "./ledger"], ...more };
}

/** Makes the scene. Calls of the tools that are named run at once already. */
export async function quickScene(
  era: Era = "2025-11-25",
  { rules = { allow: ["s:*"] }, server = {}, config, warm = [RUN], ...options }: QuickOptions = {},
): Promise<QuickScene> {
  const pml = { version: 1, permissions: rules, mcpServers: { s: scriptServer(server) } };
  const ws = await makeScenery({ pml, ...options });
  if (config !== undefined) await writeConfig(ws, config);
  const file = join(ws.root, "quick");
  await writeFile(file, "");
  const [deno, run = "", ...args] = pmlCommand();
  const preload = `--preload=${repoFile("tests/kit/quick_watch.ts")}`;
  const raw = new RawStdio(ws, {
    ...options,
    era,
    command: [deno, run, preload, ...args, "stdio"],
    env: { ...options.env, QUICK_FILE: file },
  });
  const scene = sceneOf(ws, raw, file);
  try {
    await raw.open();
    await warmUp(scene, warm);
    return scene;
  } catch (error) {
    await scene[Symbol.asyncDispose]();
    throw error;
  }
}

/** Calls tools until each runs at once: a new tool is pinned first, and then all are looked at. */
export async function warmUp(
  { call, ways }: QuickScene,
  warm: NonNullable<QuickOptions["warm"]> = [RUN],
): Promise<void> {
  await until(async () => {
    const before = await ways();
    for (const [tool, said] of warm) await call(said, tool);
    return (await ways()).slice(before.length) === "+".repeat(warm.length);
  });
}

function sceneOf(ws: Workspace, pml: RawStdio, file: string): QuickScene {
  const ways = () => readFile(file, "utf8");
  const call: QuickScene["call"] = (said = {}, tool = "s__run") =>
    pml.request("tools/call", { name: tool, arguments: said });
  return {
    ...{ ws, pml, ways, call },
    quick: async (said, tool) => {
      const before = await ways();
      const answer = await call(said, tool);
      assert.equal((await ways()).slice(before.length), "+", "the call did not run at once");
      return answer;
    },
    gated: async (said = {}, tool = "s__run") => {
      const before = await ways();
      const answer = await pml.request("tools/call", { name: tool, arguments: said, ...GATES });
      assert.equal(await ways(), before, "the call did not pass the gates");
      return answer;
    },
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

/** Writes the person's `config.yaml`; JSON is YAML. */
export async function writeConfig(ws: Workspace, config: object): Promise<void> {
  await writeFile(join(ws.home, "config.yaml"), JSON.stringify(config));
}

/** Asks the client something. */
export const ASK: Said = {
  steps: [{
    ask: {
      method: "elicitation/create",
      params: { message: "Who?", requestedSchema: { type: "object", properties: {} } },
    },
  }],
};

/** Writes a line that tells of progress. */
export function told(progress: number): { readonly write: string } {
  const params = `"progressToken":$TOKEN,"progress":${progress}`;
  return { write: `{"jsonrpc":"2.0","method":"notifications/progress","params":{${params}}}` };
}

/** Writes a line that answers the call. */
export function answers(members: string): Said {
  return { silent: true, steps: [{ write: `{"jsonrpc":"2.0","id":$ID,${members}}` }] };
}

/** Returns what an answer says, without the id. */
export function bare({ id: _, ...message }: Message): Omit<Message, "id"> {
  return message;
}

/** Returns the code of PML's error in an answer; undefined if it has none. */
export function codeIn({ result, error }: Message): string | undefined {
  const said = (result?.structuredContent as Json | undefined)?.error?.code;
  return (said ?? (error?.data as Json | undefined)?.code) as string | undefined;
}

/** Calls through the gates until they say something, and then at once: both must say the same. */
export async function bothSay(
  { gated, call }: QuickScene,
  says: (answer: Message) => boolean,
  said?: Said,
): Promise<void> {
  let gates: Message | undefined;
  await until(async () => says(gates = await gated(said)));
  assert.deepEqual(bare(await call(said)), bare(gates as unknown as Message));
}

/**
 * Scenes with evil stdio servers behind PML, and readers of their ledgers.
 *
 * @module
 */

import { readFile } from "node:fs/promises";
import process from "node:process";
import type { Message } from "../kit/json_rpc.ts";
import { processes } from "../kit/procwatch.ts";
import { repoFile } from "../kit/pml_command.ts";
import type { RawStdio } from "../kit/raw_stdio.ts";
import type { Workspace } from "../kit/workspace.ts";
import { codeOf, textOf } from "./oracles.ts";
import { makeScene, type Scene, type SceneOptions } from "./stage.ts";

/** Returns the definition of an evil server; its ledger is next to the workspace file. */
export function evil(mode: string, ...more: readonly string[]): Record<string, unknown> {
  const script = repoFile("tests/kit/evil_server.ts");
  const args = ["run", "-A", "--no-config", "--quiet", script, mode, `./${mode}.ledger`, ...more];
  return { command: process.execPath, args };
}

/** Creates a scene with servers of these modes, each named after its mode. */
export function sceneOf(modes: readonly string[], options: SceneOptions = {}): Promise<Scene> {
  const servers = modes.map((mode) => [mode, evil(mode)]);
  const allow = ["filesystem:*", ...modes.map((mode) => `${mode}:*`)];
  const pml = { version: 1, permissions: { allow }, mcpServers: Object.fromEntries(servers) };
  return makeScene({ pml, ...options });
}

/** Returns the notes of a server. */
export async function ledgerOf(ws: Workspace, mode: string): Promise<readonly string[]> {
  const text = await readFile(ws.file(`${mode}.ledger`), "utf8").catch(() => "");
  return text.split("\n").filter((line) => line !== "");
}

/** Counts the notes of a server with a prefix. */
export async function countOf(ws: Workspace, mode: string, what: string): Promise<number> {
  return (await ledgerOf(ws, mode)).filter((line) => line.startsWith(what)).length;
}

/** Calls a tool by its id. */
export function call(
  pml: RawStdio,
  id: string,
  args: Record<string, unknown> = {},
): Promise<Message> {
  return pml.callTool("call", { tool: id, arguments: args });
}

/** Returns the error code in the text of a result for the model. */
export function toldCode(answer: Message): string | undefined {
  return codeOf(answer) ?? /^[A-Z_]+(?=:)/.exec(textOf(answer))?.[0];
}

/** Returns the process ids of a server, in the order of its starts. */
export async function pidsOf(ws: Workspace, mode: string): Promise<readonly number[]> {
  const starts = (await ledgerOf(ws, mode)).filter((line) => line.startsWith("start "));
  return starts.map((line) => Number(line.slice("start ".length)));
}

/** Returns whether a process is alive. */
export async function lives(pid: number): Promise<boolean> {
  return (await processes()).some((one) => one.pid === pid);
}

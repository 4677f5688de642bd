/**
 * Scenes with evil stdio servers behind PML, and a look at what each of them did.
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

/** The definition of an evil server; its ledger lies beside the workspace file. */
export function evil(mode: string, ...more: readonly string[]): Record<string, unknown> {
  const script = repoFile("tests/kit/evil_server.ts");
  const args = ["run", "-A", "--no-config", "--quiet", script, mode, `./${mode}.ledger`, ...more];
  return { command: process.execPath, args };
}

/** Makes a scene with servers of these modes, whose names are the modes. */
export function sceneOf(modes: readonly string[], options: SceneOptions = {}): Promise<Scene> {
  const servers = modes.map((mode) => [mode, evil(mode)]);
  const allow = ["filesystem:*", ...modes.map((mode) => `${mode}:*`)];
  const pml = { version: 1, permissions: { allow }, mcpServers: Object.fromEntries(servers) };
  return makeScene({ pml, ...options });
}

/** Gives what a server noted. */
export async function ledgerOf(ws: Workspace, mode: string): Promise<readonly string[]> {
  const text = await readFile(ws.file(`${mode}.ledger`), "utf8").catch(() => "");
  return text.split("\n").filter((line) => line !== "");
}

/** Counts the notes of a server that begin so. */
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

/** The codes of errors that are told to the model stand in their text. */
export function toldCode(answer: Message): string | undefined {
  return codeOf(answer) ?? /^[A-Z_]+(?=:)/.exec(textOf(answer))?.[0];
}

/** Gives the ids of the processes that a server was, in the order of their starts. */
export async function pidsOf(ws: Workspace, mode: string): Promise<readonly number[]> {
  const starts = (await ledgerOf(ws, mode)).filter((line) => line.startsWith("start "));
  return starts.map((line) => Number(line.slice("start ".length)));
}

/** Tells whether a process lives, by its id. */
export async function lives(pid: number): Promise<boolean> {
  return (await processes()).some((one) => one.pid === pid);
}

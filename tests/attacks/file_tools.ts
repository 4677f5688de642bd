/**
 * The tools of `filesystem` as an attacker uses them, and links that lead outside a workspace.
 *
 * @module
 */

import assert from "node:assert/strict";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Message } from "../kit/json_rpc.ts";
import type { RawStdio } from "../kit/raw_stdio.ts";
import type { Workspace } from "../kit/workspace.ts";
import { codeOf, textOf } from "./oracles.ts";

/** The content of the file in the folder whose name begins with the workspace's name. */
export const SECRET = "secret-5d1f0c5b8e7a4f0c";

/** Returns the arguments of a tool for a path. */
export type Arguments = (path: string) => Record<string, unknown>;

/** The tools that read, with their arguments. */
export const READING: Readonly<Record<string, Arguments>> = {
  read_file: (path) => ({ path }),
  read_text_file: (path) => ({ path, tail: 3 }),
  read_media_file: (path) => ({ path }),
  read_multiple_files: (path) => ({ paths: [path, path] }),
  list_directory: (path) => ({ path }),
  list_directory_with_sizes: (path) => ({ path }),
  directory_tree: (path) => ({ path }),
  search_files: (path) => ({ path, pattern: "**" }),
  get_file_info: (path) => ({ path }),
};

/** The tools that write. In a key with a blank, the first word is the tool. */
export const WRITING: Readonly<Record<string, Arguments>> = {
  write_file: (path) => ({ path, content: "attacked" }),
  edit_file: (path) => ({ path, edits: [{ oldText: "secret", newText: "attacked" }] }),
  "move_file from": (path) => ({ source: path, destination: "moved" }),
  "move_file to": (path) => ({ source: "good.txt", destination: path }),
  create_directory: (path) => ({ path }),
  remove_file: (path) => ({ path }),
  remove_directory: (path) => ({ path, recursive: true }),
};

/** All file tools. */
export const FILE_TOOLS: Readonly<Record<string, Arguments>> = { ...READING, ...WRITING };

/** Links that lead outside, as a clone may contain them. */
export const LINKS: Readonly<Record<string, (ws: Workspace) => string>> = {
  "to-file": (ws) => ws.outside,
  "to-file-relative": () => "../outside/canary.txt",
  "to-folder": (ws) => join(ws.root, "outside"),
  "chain-1": () => "chain-2",
  "chain-2": () => "deep/../chain-3",
  "chain-3": () => "../outside/canary.txt",
  "dangling": (ws) => join(ws.root, "outside", "made.txt"),
  "to-nowhere/made.txt": (ws) => join(ws.root, "nowhere", "made.txt"),
  "to-sibling": () => "../ws-evil/secret.txt",
  "to-proc": () => "/proc/self/environ",
  "to-root": () => "/",
  "loop": () => "loop",
};

/** Calls a tool with a path. */
export async function use(
  pml: RawStdio,
  tool: string,
  { path, ms }: { readonly path: string; readonly ms?: number },
): Promise<Message> {
  const args = FILE_TOOLS[tool];
  assert.ok(args !== undefined, tool);
  return await pml.callTool(`filesystem__${tool.split(" ")[0]}`, args(path), { ms });
}

/** Asserts that a call did nothing: it returned a code, or the tool failed. */
export function assertRefused(
  answer: Message,
  { code, what }: { readonly code?: string; readonly what: string },
): void {
  // This tool reports each failure in the place of the file.
  const told = /^[^]*?: Error - /.test(textOf(answer));
  if (code !== undefined && !told) assert.equal(codeOf(answer), code, `${what}: ${shown(answer)}`);
  const failed = answer.result?.isError as unknown === true || codeOf(answer) !== undefined;
  assert.ok(failed || told, `${what}: ${shown(answer)}`);
}

function shown(answer: Message): string {
  return JSON.stringify(answer).slice(0, 500);
}

/** Creates a folder whose name begins with the workspace's name. */
export async function plantSibling(ws: Workspace): Promise<void> {
  await mkdir(`${ws.path}-evil`);
  await writeFile(`${ws.path}-evil/secret.txt`, SECRET);
}

/** Creates the links. */
export async function plantLinks(ws: Workspace): Promise<void> {
  await mkdir(ws.file("deep"));
  await mkdir(ws.file("to-nowhere"));
  for (const [name, target] of Object.entries(LINKS)) await symlink(target(ws), ws.file(name));
}

/** Renaming or removing a link, a pipe or a socket opens no file. */
export function actsOnLinkItself(tool: string): boolean {
  return tool === "move_file from" || tool.startsWith("remove_") || tool === "get_file_info";
}

/**
 * The scene of an attack: a workspace with a good file, rules and limits, and a spawned,
 * initialized PML in it.
 *
 * @module
 */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { readWorkspaceFile } from "../../src/config/file.ts";
import { readUserConfig } from "../../src/config/user_config.ts";
import { RawStdio, type RawStdioOptions } from "../kit/raw_stdio.ts";
import { makeWorkspace, type Workspace, type WorkspaceOptions } from "../kit/workspace.ts";
import { GOOD } from "./oracles.ts";

/**
 * Options of a scene; `pml` is the content of `.pml.json`, by default rules for every file tool.
 */
export interface SceneOptions extends RawStdioOptions, Pick<WorkspaceOptions, "pml" | "trusted"> {
  readonly files?: WorkspaceOptions["files"];
  /** Limits of the user's `config.yaml`, with the names used there. */
  readonly limits?: Readonly<Record<string, number>>;
  /** Data before initialize. */
  readonly first?: string;
  /** Changes the workspace before PML starts. */
  readonly prepare?: (ws: Workspace) => Promise<void>;
}

/** A workspace, and PML in it. Its disposal kills and removes all that is left. */
export interface Scene extends AsyncDisposable {
  readonly ws: Workspace;
  readonly pml: RawStdio;
}

/** Rules that allow every file tool. */
export const FILES_ALLOWED = { version: 1, permissions: { allow: ["filesystem:*"] } } as const;

/**
 * A module whose `wait` ends when a file appears, and returns its text, and whose `spin` never
 * ends, and one that never finishes loading, with rules that allow both.
 */
export const SLOW = {
  files: {
    "slow.js": `
      export const __meta__ = {
        name: "slow", version: "1.0.0", permissions: { read: ["."] },
        tools: { wait: { inputSchema: { type: "object" } }, spin: {} },
      };
      export async function wait({ path }) {
        for (;;) {
          try {
            const text = await Deno.readTextFile(path);
            // A file that was just created may still be empty.
            if (text !== "") return text;
          } catch (error) {
            if (!(error instanceof Deno.errors.NotFound)) throw error;
          }
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
      }
      export function spin() {
        for (;;);
      }`,
    "stuck.js": `
      export const __meta__ = { name: "stuck", version: "1.0.0", tools: { go: {} } };
      export function go() {}
      for (;;);`,
  },
  pml: {
    version: 1,
    permissions: { allow: ["filesystem:*", "slow:*", "stuck:*"] },
    private_mcps: {
      slow: { type: "deno", path: "slow.js" },
      stuck: { type: "deno", path: "stuck.js" },
    },
  },
} as const;

/** Creates a workspace of an attack, without a PML in it. */
export async function makeAttackWorkspace(options: SceneOptions = {}): Promise<Workspace> {
  const { files, limits = {}, pml = FILES_ALLOWED, trusted = true, prepare } = options;
  const ws = await makeWorkspace({ files: { ...GOOD, ...files }, pml, trusted });
  const lines = Object.entries(limits).map(([name, value]) => `  ${name}: ${value}\n`);
  if (lines.length > 0) await writeFile(join(ws.home, "config.yaml"), `limits:\n${lines.join("")}`);
  await prepare?.(ws);
  await markValid(ws);
  return ws;
}

/**
 * Marks the valid parts of the configuration in the PML home, as an earlier start does: checking
 * them takes a quarter of a first start. PML checks the invalid parts.
 */
async function markValid(ws: Workspace): Promise<void> {
  const report = { problems: [], warnings: [], home: ws.home };
  await readWorkspaceFile(ws.file(".pml.json"), report);
  await readUserConfig(join(ws.home, "config.yaml"), report);
}

/** Creates the workspace, spawns PML in it, and initializes it. */
export async function makeScene(options: SceneOptions = {}): Promise<Scene> {
  const ws = await makeAttackWorkspace(options);
  const pml = new RawStdio(ws, options);
  const dispose = async () => {
    await pml[Symbol.asyncDispose]();
    await ws[Symbol.asyncDispose]();
  };
  try {
    if (options.first !== undefined) await pml.sendText(options.first);
    await pml.open();
  } catch (error) {
    await dispose();
    throw error;
  }
  return { ws, pml, [Symbol.asyncDispose]: dispose };
}

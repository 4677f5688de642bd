/**
 * Installs public clients, at the versions of `tests/clients/package.json`, and a Node that is new
 * enough for them if the present one is older.
 *
 * @module
 */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { installedOnce } from "../real_clients/install.ts";
import { repoFile } from "./pml_command.ts";

/** The Node that they need, and the one that npm installs if the present one is older. */
const [LEAST, NODE] = [24, "node@24.21.0"];

/** The exit code and output of a program. */
export interface ProgramOutput {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The folder and environment of a program. */
export interface RunPlace {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Runs a program to its end. */
export async function runClient(
  [program = "", ...args]: readonly string[],
  { cwd, env = {} }: RunPlace,
): Promise<ProgramOutput> {
  const command = new Deno.Command(program, { args, cwd, env, stdin: "null" });
  const { code, stdout, stderr } = await command.output();
  const text = new TextDecoder();
  return { code, stdout: text.decode(stdout), stderr: text.decode(stderr) };
}

/** The installed clients. */
export interface FoundClients {
  /** The folder that contains them. */
  readonly folder: string;
  /** The program that runs node. */
  readonly node: string;
  /** Returns the words that start a client by the name of its program. */
  readonly start: (name: string) => readonly string[];
}

/**
 * Installs the clients, once on a machine for each list of versions, and links them into a folder.
 */
export async function installedClients(folder: string): Promise<FoundClients> {
  const list = await Deno.readTextFile(repoFile("tests/clients/package.json"));
  const { stdout } = await runClient(["node", "--version"], { cwd: folder });
  const isOld = !(Number(/^v(\d+)/.exec(stdout)?.[1]) >= LEAST);
  const how = ["--no-audit", "--no-fund", "--loglevel=error", "--prefer-offline"];
  const install = ["npm", "install", ...how, ...(isOld ? [NODE] : [])];
  const hash = createHash("sha256").update(JSON.stringify([list, install])).digest("hex");
  const packages = await installedOnce(`found-${hash.slice(0, 16)}`, async (fresh) => {
    await Deno.writeTextFile(`${fresh}/package.json`, list);
    const { code, stderr } = await runClient(install, { cwd: fresh });
    assert.equal(code, 0, stderr);
  });
  await Deno.symlink(`${packages}/node_modules`, `${folder}/node_modules`);
  const bin = `${folder}/node_modules/.bin`;
  const node = isOld ? `${bin}/node` : "node";
  return { folder, node, start: (name) => [node, `${bin}/${name}`] };
}

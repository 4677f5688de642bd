/**
 * Installs clients from npm, each version once on a machine.
 *
 * @module
 */

import { mkdir, mkdtemp, rename, rm, stat, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import type { RealClient } from "./clients.ts";

const CACHE = join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "pml-ci", "clients");

/** The codes of npm, Node and the system when the registry sent no response. */
const UNREACHABLE =
  /\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ENETUNREACH|EHOSTUNREACH|ETIMEDOUT|ENOTCACHED|ERR_SOCKET_TIMEOUT)\b/;

/** The registry of npm is not reachable. Tests that are skipped show the message. */
export class NpmUnreachable extends Error {}

/** Returns the program of a client, installed at its exact version. Throws `NpmUnreachable`. */
export async function installClient({ name, version, npm, bin }: RealClient): Promise<string> {
  const folder = await installedOnce(`${name}-${version}`, async (fresh) => {
    await writeFile(join(fresh, "package.json"), '{ "private": true }\n');
    await runNpm(["install", "--no-audit", "--no-fund", `${npm}@${version}`], fresh);
  });
  return join(folder, "node_modules", ".bin", bin);
}

/** Returns a folder of this machine with installed packages. `install` fills it the first time. */
export async function installedOnce(
  name: string,
  install: (folder: string) => Promise<void>,
): Promise<string> {
  const folder = join(CACHE, name);
  if (await exists(folder)) return folder;
  await mkdir(CACHE, { recursive: true });
  // Installed under another name first, so that an interrupted install is never used.
  const fresh = await mkdtemp(join(CACHE, "new-"));
  try {
    await install(fresh);
    // Another process may have installed the same packages meanwhile.
    await rename(fresh, folder).catch(async (error) => {
      if (!await exists(folder)) throw error;
    });
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
  return folder;
}

/**
 * Returns why clients cannot be installed; `undefined` if they can be, or are already installed.
 */
export async function reasonNotToRun(clients: readonly RealClient[]): Promise<string | undefined> {
  try {
    for (const client of clients) await installClient(client);
    return undefined;
  } catch (error) {
    if (error instanceof NpmUnreachable) return error.message;
    throw error;
  }
}

async function runNpm(args: readonly string[], cwd: string): Promise<void> {
  const more = ["--loglevel=error", "--prefer-offline", "--fetch-retries=1"];
  const command = new Deno.Command("npm", { args: [...args, ...more], cwd, stdin: "null" });
  const { success, stderr } = await command.output();
  if (success) return;
  const text = new TextDecoder().decode(stderr);
  const [code] = UNREACHABLE.exec(text) ?? [];
  if (code !== undefined) throw new NpmUnreachable(`npm is not reachable: ${code}`);
  throw new Error(`Cannot run npm ${args.join(" ")}: ${text}`);
}

function exists(path: string): Promise<boolean> {
  return stat(path).then(() => true, () => false);
}

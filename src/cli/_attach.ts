/**
 * Attaches `pml stdio` to a running `pml serve` of the same user and workspace, if their
 * environments are equal.
 *
 * @module
 */

import type { Duplex } from "node:stream";
import { resolve } from "node:path";
import type { Environment } from "../config/env.ts";
import { ownNames } from "../config/own_names.ts";
import { foldersAbove } from "../config/workspace.ts";
import { objectOf } from "../core/json.ts";
import { VERSION } from "../core/version.ts";
import { passOn } from "../transport/attach/window.ts";
import { commandProcess } from "./command_process.ts";
import { connected, hashed, LineExchange, socketOf } from "../transport/attach/window_socket.ts";

/** How a window ended; undefined if there was none. */
type AttachResult = { readonly pipes: Awaited<ReturnType<typeof passOn>> } | undefined;

/**
 * Passes everything on to a running PML until the client closes its end or the signal comes. Returns
 * undefined if there is none, and pipes if it has ended before its client.
 */
export async function attached(
  environment: Environment,
  signal: AbortSignal,
): Promise<AttachResult> {
  const { cwd } = commandProcess();
  const { home, workspace } = environment;
  const folders = workspace === undefined ? [cwd, ...foldersAbove(cwd)] : [resolve(cwd, workspace)];
  for (const folder of folders) {
    const socket = await connected(socketOf(home, folder));
    if (socket === undefined) continue;
    const inputBytes = await agreed(socket, { environment, cwd });
    if (inputBytes !== undefined) {
      return { pipes: await passOn({ socket, inputBytes, signal, pipes: commandProcess().pipes }) };
    }
    socket.destroy();
  }
  return undefined;
}

/**
 * Proves that this process has the user, version, folder and variables that the server requires.
 * Returns the maximum size of a message; undefined if the server does not accept the process.
 */
async function agreed(
  socket: Duplex,
  { environment, cwd }: { readonly environment: Environment; readonly cwd: string },
): Promise<number | undefined> {
  const { get } = environment;
  const own = ownNames(commandProcess().variables);
  const exchange = new LineExchange(socket);
  exchange.say({ version: VERSION, cwd });
  const { nonce, names = [] } = objectOf(await exchange.next());
  if (typeof nonce !== "string" || !Array.isArray(names)) return undefined;
  const all = [...names.map(String), ...own];
  const values = Object.fromEntries(all.map((name) => [name, hashed(nonce, get(name))]));
  exchange.say({ own, values });
  const { inputBytes } = objectOf(await exchange.next());
  exchange.end();
  return typeof inputBytes === "number" ? inputBytes : undefined;
}

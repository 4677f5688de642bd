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
import { connectToSocket, LineExchange } from "../transport/attach/private_socket.ts";
import { hashVariable, keyOf, socketPathOf } from "../transport/attach/window_socket.ts";

/** How the attached connection ended; undefined if no PML accepted it. */
type AttachResult = { readonly pipes: Awaited<ReturnType<typeof passOn>> } | undefined;

/**
 * Passes all messages to a running PML until the client disconnects or the signal aborts. Returns
 * undefined if no running PML accepts this process. The result contains pipes if that PML ended
 * before the client.
 */
export async function tryAttach(
  environment: Environment,
  signal: AbortSignal,
): Promise<AttachResult> {
  const { cwd } = commandProcess();
  const { home, workspace } = environment;
  const folders = workspace === undefined ? [cwd, ...foldersAbove(cwd)] : [resolve(cwd, workspace)];
  for (const folder of folders) {
    const path = socketPathOf(home, folder);
    const socket = await connectToSocket(path);
    if (socket === undefined) continue;
    const inputBytes = await requestAttach(socket, { environment, cwd, key: keyOf(path) ?? "" });
    if (inputBytes !== undefined) {
      return { pipes: await passOn({ socket, inputBytes }, signal, commandProcess().pipes) };
    }
    socket.destroy();
  }
  return undefined;
}

/**
 * Proves to the running PML that this process has the same user, version, folder and variables.
 * Returns the maximum size of a message in bytes; undefined if that PML does not accept the process.
 */
async function requestAttach(
  socket: Duplex,
  { environment, cwd, key }: {
    readonly environment: Environment;
    readonly cwd: string;
    readonly key: string;
  },
): Promise<number | undefined> {
  const { get } = environment;
  const own = ownNames(commandProcess().variables);
  const exchange = new LineExchange(socket);
  exchange.send({ version: VERSION, cwd, key });
  const { nonce, names = [] } = objectOf(await exchange.next());
  if (typeof nonce !== "string" || !Array.isArray(names)) return undefined;
  const all = [...names.map(String), ...own];
  const values = Object.fromEntries(all.map((name) => [name, hashVariable(nonce, get(name))]));
  exchange.send({ own, values });
  const { inputBytes } = objectOf(await exchange.next());
  exchange.end();
  return typeof inputBytes === "number" ? inputBytes : undefined;
}

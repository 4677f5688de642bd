/**
 * The socket in the PML home through which windows (`window.ts`) attach to a running `pml serve`.
 *
 * @module
 */

import type { Server } from "node:net";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { sha256 } from "../../core/hash.ts";
import { objectOf, textOf } from "../../core/json.ts";
import { randomToken } from "../../core/random.ts";
import { removeIfPossible } from "../../io/cache_files.ts";
import { NO_WARNINGS, readPrivate, withLock, writePrivate } from "../../io/private_files.ts";
import { type ClientPipes, LAST_WRITE_MS } from "../stdio/_pipes.ts";
import { inputOf, socketOutput } from "../stdio/_sockets.ts";
import { connectToSocket, isSocketPath, LineExchange, listenPrivately } from "./private_socket.ts";

/** The size of the key of a socket, in bytes. */
const KEY_BYTES = 32;

/** Returns the folder of the sockets in a PML home. */
export function socketFolder(home: string): string {
  return join(home, "windows");
}

/** Returns the path of the socket for a workspace. */
export function socketPathOf(home: string, workspace: string): string {
  return join(socketFolder(home), sha256(workspace).slice(0, 16));
}

/** Returns whether a text is the key of a socket. */
export type KeyCheck = (text: unknown) => boolean;

/**
 * Listens at a socket that only this user can open, and writes its key into a file next to it.
 * Returns undefined if another process listens there, or the system does not support such a socket.
 */
export async function listenAt(
  path: string,
  take: (socket: Duplex, isKey: KeyCheck) => void,
): Promise<Server | undefined> {
  if (!isSocketPath(path)) return undefined;
  // Another process may start at the same time.
  return await withLock(`${path}.lock`, async () => {
    if (await isServed(path)) return undefined;
    const key = randomToken(KEY_BYTES);
    const hash = sha256(key);
    await writePrivate(keyFileOf(path), { key });
    const server = await listenPrivately(path, (socket) => {
      take(socket, (text) => sha256(textOf(text)) === hash);
    });
    // Another process may have written its own key into the file by then.
    server?.once("close", () => {
      if (keyOf(path) === key) removeIfPossible(keyFileOf(path));
    });
    return server;
  });
}

/**
 * Returns the key of a socket; undefined if there is none. Before version 9, Landlock can deny a
 * confined program the files of the PML home, but not its sockets. So a program must send the key,
 * which proves that it can read the PML home.
 */
export function keyOf(path: string): string | undefined {
  return readPrivate(keyFileOf(path), (json) => textOf(objectOf(json).key), NO_WARNINGS);
}

function keyFileOf(path: string): string {
  return `${path}.json`;
}

/**
 * Returns whether a process answers at a socket. A child of a killed process may keep a socket open
 * without answering.
 */
async function isServed(path: string): Promise<boolean> {
  const socket = await connectToSocket(path);
  if (socket === undefined) return false;
  const exchange = new LineExchange(socket);
  exchange.send({});
  const message = await exchange.next();
  socket.destroy();
  return message !== undefined;
}

/**
 * Returns the URL of the `pml serve` that runs for a workspace; undefined if none runs, or if
 * clients do not reach it over HTTP at the loopback address.
 */
export async function servedUrl(home: string, workspace: string): Promise<URL | undefined> {
  const path = socketPathOf(home, workspace);
  const socket = await connectToSocket(path);
  if (socket === undefined) return undefined;
  const exchange = new LineExchange(socket);
  exchange.send({ asks: "url", key: keyOf(path) ?? "" });
  const { url } = objectOf(await exchange.next().catch(() => undefined));
  socket.destroy();
  const served = URL.parse(textOf(url));
  const isLocal = served?.protocol === "http:" &&
    ["127.0.0.1", "localhost"].includes(served.hostname);
  return isLocal ? served : undefined;
}

/** Returns the input and the output of a connection. */
export function pipesOf(socket: Duplex): ClientPipes {
  return {
    open: (take) => {
      const { promise: whenEnded, resolve } = Promise.withResolvers<void>();
      socket.on("data", take).once("end", resolve).once("close", resolve).resume();
      return inputOf(socket, { whenEnded, close: () => void socket.end() });
    },
    output: socketOutput(socket),
    discardOutput: () => Deno.unrefTimer(setTimeout(() => socket.destroy(), LAST_WRITE_MS)),
  };
}

/** Returns a hash of the value of a variable, which can only be compared with another hash. */
export function hashVariable(nonce: string, value: string | undefined): string {
  return sha256(`${nonce} ${value ?? ""}`);
}

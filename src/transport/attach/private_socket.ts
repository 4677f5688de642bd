/**
 * Sockets in the PML home that only this user can open, and lines of JSON on them.
 *
 * @module
 */

import { once } from "node:events";
import { connect, createServer, type Server } from "node:net";
import { dirname } from "node:path";
import type { Duplex } from "node:stream";
import { objectOf } from "../../core/json.ts";
import { toOneLine } from "../../core/json_text.ts";
import { LineReader } from "../../io/lines.ts";
import { privateFolder, unlessGone } from "../../io/private_files.ts";
import { settlesWithin } from "../../io/waiting.ts";

/** The maximum length of a socket path. Systems allow only a few bytes more. */
const PATH_BYTES_MAX = 100;
/** How long a process may take to answer at a socket, in milliseconds. */
export const ANSWER_MS = 1_000;
/** The limits before MCP begins: the size of a line in bytes, and the number of waiting lines. */
const [LINE_BYTES_MAX, WAITING_LINES_MAX] = [1 << 20, 4];
/** Deno does not support Unix sockets on Windows. A named pipe replaces them. */
const HAS_SOCKETS = Deno.build.os !== "windows";

/**
 * Why connecting failed: no process listens, other users could open the socket, or the process does
 * not answer.
 */
export type Unconnected = "gone" | "not private" | "silent";

/** Returns whether the system allows a socket with this path. */
export function isSocketPath(path: string): boolean {
  return !HAS_SOCKETS || new TextEncoder().encode(path).length <= PATH_BYTES_MAX;
}

/**
 * Listens at a path at which no other process listens, for this user only. Returns undefined if the
 * system does not support such a socket.
 */
export async function listenPrivately(
  path: string,
  take: (socket: Duplex) => void,
): Promise<Server | undefined> {
  if (!isSocketPath(path)) return undefined;
  privateFolder(dirname(path));
  // A killed process may have left its socket.
  await Deno.remove(path).catch(unlessGone);
  if (HAS_SOCKETS) return await listenAtSocket(path, take);
  return await (await import("./window_pipe.ts")).listenAtPipe(path, take);
}

async function listenAtSocket(
  path: string,
  take: (socket: Duplex) => void,
): Promise<Server | undefined> {
  const server = createServer(take);
  server.listen(path);
  const isListening = await once(server, "listening").then(() => true, () => false);
  if (!isListening) return undefined;
  await Deno.chmod(path, 0o600);
  return server;
}

/** Connects to a socket of this user; undefined if no process listens there. */
export async function connectToSocket(path: string): Promise<Duplex | undefined> {
  const socket = await connectOrWhy(path);
  return typeof socket === "string" ? undefined : socket;
}

/** Connects to a socket of this user, or returns why it cannot. */
export async function connectOrWhy(path: string): Promise<Duplex | Unconnected> {
  if (!HAS_SOCKETS) {
    return await (await import("./window_pipe.ts")).connectToPipe(path) ?? "silent";
  }
  const isPrivate = isOnlyForUser(path);
  // guard: window-socket
  if (isPrivate !== true) return isPrivate === undefined ? "gone" : "not private";
  let code: unknown;
  // `connected` below resolves to false after an error.
  const socket = connect(path).on("error", (error) => code = objectOf(error).code);
  const connected = once(socket, "connect").then(() => true, () => false);
  if (await settlesWithin(connected, ANSWER_MS) && await connected) return socket;
  socket.destroy();
  return code === "ECONNREFUSED" || code === "ENOENT" ? "gone" : "silent";
}

/**
 * Returns whether only this user can open a socket and its folder; undefined if there is no socket.
 */
function isOnlyForUser(path: string): boolean | undefined {
  try {
    const [socket, folder] = [path, dirname(path)].map((each) => Deno.lstatSync(each));
    const isPrivate = ({ uid, mode }: Deno.FileInfo) =>
      uid === Deno.uid() && ((mode ?? 0o777) & 0o077) === 0;
    return socket?.isSocket === true && isPrivate(socket) && folder !== undefined &&
      isPrivate(folder);
  } catch {
    return undefined;
  }
}

/** Exchanges lines of JSON before MCP begins. */
export class LineExchange {
  readonly #socket: Duplex;
  readonly #lines = new LineReader(LINE_BYTES_MAX);
  readonly #messages: (string | undefined)[] = [];
  #wake = () => {};
  readonly #onData = (piece: Uint8Array) => {
    this.#lines.push(piece, (line) => {
      // Each side waits for the answer of the other side, so few lines wait at the same time.
      // guard: exchange-lines
      if (this.#messages.length >= WAITING_LINES_MAX) return void this.#socket.destroy();
      this.#messages.push(line.kind === "line" ? new TextDecoder().decode(line.bytes) : undefined);
    });
    this.#wake();
  };

  /** Starts to read lines. */
  constructor(socket: Duplex) {
    this.#socket = socket;
    socket.on("data", this.#onData).once("close", () => this.#wake()).resume();
  }

  /** Sends a value. */
  send(value: unknown): void {
    this.#socket.write(`${toOneLine(JSON.stringify(value))}\n`);
  }

  /** Returns the next value from the other end; undefined if none arrives in time. */
  async next(): Promise<unknown> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    if (this.#messages.length === 0) await settlesWithin(promise, ANSWER_MS);
    const line = this.#messages.shift();
    return line === undefined ? undefined : JSON.parse(line);
  }

  /** Stops reading lines, because MCP begins. */
  end(): void {
    this.#socket.off("data", this.#onData).pause();
  }
}

/**
 * The socket in the PML home through which windows attach to a running `pml serve`.
 *
 * @module
 */

import { once } from "node:events";
import { connect, createServer, type Server } from "node:net";
import { dirname, join } from "node:path";
import type { Duplex } from "node:stream";
import { sha256 } from "../../core/hash.ts";
import { inOneLine } from "../../core/json_text.ts";
import { LineReader } from "../../io/lines.ts";
import { locked, privateFolder, unlessGone } from "../../io/private_files.ts";
import { soon } from "../../io/waiting.ts";
import { type ClientPipes, LAST_WRITE_MS } from "../stdio/_pipes.ts";
import { inputOf, socketOutput } from "../stdio/_sockets.ts";

/** The maximum length of a socket path. Systems allow only a few bytes more. */
const LONGEST = 100;
/** How long a process may take to answer at a socket, in milliseconds. */
export const ANSWER_MS = 1_000;
/** The maximum size of a line before MCP begins, in bytes. */
const MOST_SAID = 1 << 20;
/** Deno does not support Unix sockets on Windows. A named pipe replaces them. */
const HAS_SOCKETS = Deno.build.os !== "windows";

/** Returns the folder of the sockets in a PML home. */
export function socketFolder(home: string): string {
  return join(home, "windows");
}

/** Returns the path of the socket for a workspace. */
export function socketOf(home: string, workspace: string): string {
  return join(socketFolder(home), sha256(workspace).slice(0, 16));
}

/**
 * Listens at a socket that only this user can open. Returns undefined if another process listens
 * there, or the system does not support such a socket.
 */
export async function listenAt(
  path: string,
  take: (socket: Duplex) => void,
): Promise<Server | undefined> {
  if (HAS_SOCKETS && path.length > LONGEST) return undefined;
  privateFolder(dirname(path));
  // Another process may start at the same time.
  return await locked(`${path}.lock`, async () => {
    if (await isServed(path)) return undefined;
    // A killed process may have left its socket.
    await Deno.remove(path).catch(unlessGone);
    if (HAS_SOCKETS) return await listenAtSocket(path, take);
    return await (await import("./window_pipe.ts")).listenAtPipe(path, take);
  });
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

/**
 * Returns whether a process answers at a socket. A child of a killed process may keep a socket open
 * without answering.
 */
async function isServed(path: string): Promise<boolean> {
  const socket = await connected(path);
  if (socket === undefined) return false;
  const exchange = new LineExchange(socket);
  exchange.say({});
  const message = await exchange.next();
  socket.destroy();
  return message !== undefined;
}

/** Connects to a socket of this user; undefined if no process listens there. */
export async function connected(path: string): Promise<Duplex | undefined> {
  if (!HAS_SOCKETS) return await (await import("./window_pipe.ts")).connectedToPipe(path);
  // guard: window-socket
  if (!isOwn(path)) return undefined;
  // The end of the socket reports the error.
  const socket = connect(path).on("error", () => {});
  const open = once(socket, "connect").then(() => true, () => false);
  if (await soon(open, ANSWER_MS) && await open) return socket;
  socket.destroy();
  return undefined;
}

/** Returns whether only this user can open a socket and its folder. */
function isOwn(path: string): boolean {
  try {
    return [path, dirname(path)].map((each) => Deno.lstatSync(each)).every(({ uid, mode }) =>
      uid === Deno.uid() && ((mode ?? 0o777) & 0o077) === 0
    );
  } catch {
    return false; // it does not exist
  }
}

/** Exchanges lines of JSON before MCP begins. */
export class LineExchange {
  readonly #socket: Duplex;
  readonly #lines = new LineReader(MOST_SAID);
  readonly #messages: (string | undefined)[] = [];
  #wake = () => {};
  readonly #take = (piece: Uint8Array) => {
    this.#lines.push(piece, (line) => {
      this.#messages.push(line.kind === "line" ? new TextDecoder().decode(line.bytes) : undefined);
    });
    this.#wake();
  };

  /** Starts to read lines. */
  constructor(socket: Duplex) {
    this.#socket = socket;
    socket.on("data", this.#take).once("close", () => this.#wake()).resume();
  }

  /** Sends a value. */
  say(value: unknown): void {
    this.#socket.write(`${inOneLine(JSON.stringify(value))}\n`);
  }

  /** Returns the next value from the other end; undefined if none arrives in time. */
  async next(): Promise<unknown> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    if (this.#messages.length === 0) await soon(promise, ANSWER_MS);
    const line = this.#messages.shift();
    return line === undefined ? undefined : JSON.parse(line);
  }

  /** Stops reading lines, because MCP begins. */
  end(): void {
    this.#socket.off("data", this.#take).pause();
  }
}

/** Returns the input and the output of a connection. */
export function pipesOf(socket: Duplex): ClientPipes {
  return {
    open: (take) => {
      const { promise: over, resolve } = Promise.withResolvers<void>();
      socket.on("data", take).once("end", resolve).once("close", resolve).resume();
      return inputOf(socket, { over, close: () => void socket.end() });
    },
    output: socketOutput(socket),
    giveUp: () => Deno.unrefTimer(setTimeout(() => socket.destroy(), LAST_WRITE_MS)),
  };
}

/** Returns a hash of the value of a variable, which can only be compared with another hash. */
export function hashed(nonce: string, value: string | undefined): string {
  return sha256(`${nonce} ${value ?? ""}`);
}

/**
 * On Windows, a `pml stdio` attaches to a running `pml serve` through a named pipe instead of a
 * socket in the PML home. Other users
 * can see the names of pipes and create pipes with the same names. Both ends therefore first prove
 * that they can read a file in the PML home. Only Windows loads this module.
 *
 * @module
 */

import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { Duplex } from "node:stream";
import { objectOf, textOf } from "../../core/json.ts";
import { readPlainText, writePrivate } from "../../io/private_files.ts";
import { settlesWithin } from "../../io/waiting.ts";
import { ANSWER_MS, LineExchange } from "./private_socket.ts";

/** The content of the file in the PML home. */
interface PipeFile {
  readonly pipe: string;
  readonly key: string;
}

/**
 * Listens at a new pipe, and writes its name to a file. Returns undefined if the system has no
 * pipes.
 */
export async function listenAtPipe(
  path: string,
  take: (socket: Duplex) => void,
  pipe: string = `\\\\.\\pipe\\pml-${crypto.randomUUID()}`,
): Promise<Server | undefined> {
  // The name and the key are new each time. The pipe named in an old file may belong to another
  // user.
  const file: PipeFile = { pipe, key: randomBytes(32).toString("hex") };
  const server = createServer((raw) => {
    const socket = new PipeEnd(raw).on("error", () => {}); // the end of the pipe reports it
    clientHasKey(socket, file.key).then((hasKey) => hasKey ? take(socket) : socket.destroy());
  });
  server.listen(pipe);
  const isListening = await once(server, "listening").then(() => true, () => false);
  if (!isListening) return undefined;
  await writePrivate(path, file);
  return server;
}

/** Connects to the pipe that a file names; undefined if no process of this user listens there. */
export async function connectToPipe(path: string): Promise<Duplex | undefined> {
  const file = readFile(path);
  if (file === undefined) return undefined;
  const raw = connect(file.pipe).on("error", () => {});
  const connected = once(raw, "connect").then(() => true, () => false);
  if (await settlesWithin(connected, ANSWER_MS) && await connected) {
    const socket = new PipeEnd(raw).on("error", () => {});
    if (await serverHasKey(socket, file.key)) return socket;
    socket.destroy();
  }
  raw.destroy();
  return undefined;
}

function readFile(path: string): PipeFile | undefined {
  try {
    const { pipe, key } = objectOf(JSON.parse(readPlainText(path) ?? "null"));
    return typeof pipe === "string" && typeof key === "string" ? { pipe, key } : undefined;
  } catch {
    return undefined; // the file is incomplete
  }
}

/** Returns whether the client proves that it has the key. First proves that the server has it. */
async function clientHasKey(socket: Duplex, key: string): Promise<boolean> {
  const exchange = new LineExchange(socket);
  const { nonce } = await nextObject(exchange);
  const ownNonce = crypto.randomUUID();
  exchange.send({ proof: proofOf(key, `server ${textOf(nonce)}`), nonce: ownNonce });
  const { proof } = await nextObject(exchange);
  const hasKey = isEqual(textOf(proof), proofOf(key, `client ${ownNonce}`));
  // Another listener reads the next line, so the client waits for this answer before it sends more.
  exchange.end();
  if (hasKey) exchange.send({ proven: true });
  return hasKey;
}

/** Proves to a server that this process has the key. Returns whether the server has it, too. */
async function serverHasKey(socket: Duplex, key: string): Promise<boolean> {
  const exchange = new LineExchange(socket);
  const ownNonce = crypto.randomUUID();
  exchange.send({ nonce: ownNonce });
  const { proof, nonce } = await nextObject(exchange);
  if (!isEqual(textOf(proof), proofOf(key, `server ${ownNonce}`))) return false;
  exchange.send({ proof: proofOf(key, `client ${textOf(nonce)}`) });
  const { proven } = await nextObject(exchange);
  exchange.end();
  return proven === true;
}

async function nextObject(exchange: LineExchange): Promise<Readonly<Record<string, unknown>>> {
  try {
    return objectOf(await exchange.next());
  } catch {
    return {}; // it is not JSON
  }
}

function proofOf(key: string, text: string): string {
  return createHmac("sha256", key).update(text).digest("hex");
}

function isEqual(one: string, other: string): boolean {
  const [bytes, others] = [one, other].map((text) => new TextEncoder().encode(text));
  return bytes !== undefined && others !== undefined && bytes.length === others.length &&
    timingSafeEqual(bytes, others);
}

/** The byte that marks the end of a direction. It never occurs in JSON. */
const END = 4;

/**
 * One end of a pipe, which ends like a socket. A named pipe cannot end only one direction: `end()`
 * of its socket sends nothing, and closing the pipe ends both directions. So `END` marks the end of
 * one direction.
 */
class PipeEnd extends Duplex {
  readonly #raw: Socket;
  #hasEnded = false;

  constructor(raw: Socket) {
    super({ allowHalfOpen: false });
    this.#raw = raw;
    raw.on("data", (piece: Uint8Array) => this.#take(piece));
    raw.on("error", () => {}).once("close", () => this.#endInput());
  }

  override _read(): void {
    this.#raw.resume();
  }

  override _write(
    piece: Uint8Array,
    _encoding: string,
    done: (error?: Error | null) => void,
  ): void {
    this.#raw.write(piece, (error) => done(error));
  }

  override _final(done: () => void): void {
    if (this.#raw.destroyed) done();
    else this.#raw.write(new Uint8Array([END]), () => done());
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#raw.destroy();
    done(error);
  }

  #take(piece: Uint8Array): void {
    if (this.#hasEnded) return;
    const end = piece.indexOf(END);
    const isFull = end !== 0 && !this.push(end < 0 ? piece : piece.subarray(0, end));
    if (end >= 0) this.#endInput();
    else if (isFull) this.#raw.pause();
  }

  #endInput(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.push(null);
  }
}

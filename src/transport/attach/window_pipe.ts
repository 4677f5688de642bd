/**
 * On Windows, windows attach through a named pipe instead of a socket in the PML home. Other users can
 * see the names of pipes and make pipes with them, so both ends prove first that they can read a file
 * in the PML home. Only Windows loads this file.
 *
 * @module
 */

import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { Duplex } from "node:stream";
import { objectOf, textOf } from "../../core/json.ts";
import { readPlainText, writePrivate } from "../../io/private_files.ts";
import { soon } from "../../io/waiting.ts";
import { ANSWER_MS, Talk } from "./window_socket.ts";

/** The content of the file in the PML home. */
interface PipeFile {
  readonly pipe: string;
  readonly key: string;
}

/** Listens at a new pipe, and writes its name into a file. Undefined if the system has no pipes. */
export async function listenAtPipe(
  path: string,
  take: (socket: Duplex) => void,
  pipe: string = `\\\\.\\pipe\\pml-${crypto.randomUUID()}`,
): Promise<Server | undefined> {
  // A new name and key each time: the pipe of a file that was left behind may be another user's.
  const file: PipeFile = { pipe, key: randomBytes(32).toString("hex") };
  const server = createServer((raw) => {
    const socket = new PipeEnd(raw).on("error", () => {}); // the end of the pipe reports it
    isProven(socket, file.key).then((isOwn) => isOwn ? take(socket) : socket.destroy());
  });
  server.listen(pipe);
  const isListening = await once(server, "listening").then(() => true, () => false);
  if (!isListening) return undefined;
  await writePrivate(path, file);
  return server;
}

/** Connects to the pipe that a file names; undefined if no process of this user listens there. */
export async function connectedToPipe(path: string): Promise<Duplex | undefined> {
  const file = readFile(path);
  if (file === undefined) return undefined;
  const raw = connect(file.pipe).on("error", () => {});
  const open = once(raw, "connect").then(() => true, () => false);
  if (await soon(open, ANSWER_MS) && await open) {
    const socket = new PipeEnd(raw).on("error", () => {});
    if (await proves(socket, file.key)) return socket;
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
    return undefined; // half a file is none
  }
}

/** Returns whether the client knows the key. The server proves first that it knows it, too. */
async function isProven(socket: Duplex, key: string): Promise<boolean> {
  const talk = new Talk(socket);
  const { nonce } = await heard(talk);
  const own = crypto.randomUUID();
  talk.say({ proof: proofOf(key, `server ${textOf(nonce)}`), nonce: own });
  const { proof } = await heard(talk);
  const isOwn = isEqual(textOf(proof), proofOf(key, `client ${own}`));
  // The next line is for another listener, so the client waits for this one.
  talk.end();
  if (isOwn) talk.say({ proven: true });
  return isOwn;
}

/** Proves the key to a server that knows it. Returns whether it does. */
async function proves(socket: Duplex, key: string): Promise<boolean> {
  const talk = new Talk(socket);
  const own = crypto.randomUUID();
  talk.say({ nonce: own });
  const { proof, nonce } = await heard(talk);
  if (!isEqual(textOf(proof), proofOf(key, `server ${own}`))) return false;
  talk.say({ proof: proofOf(key, `client ${textOf(nonce)}`) });
  const { proven } = await heard(talk);
  talk.end();
  return proven === true;
}

async function heard(talk: Talk): Promise<Readonly<Record<string, unknown>>> {
  try {
    return objectOf(await talk.next());
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

/** No JSON contains this byte. */
const END = 4;

/**
 * One end of a pipe, which ends as a socket does. A named pipe has no end of one direction: `end()`
 * of its socket sends nothing, and closing it ends both. A byte in the pipe takes its place.
 */
class PipeEnd extends Duplex {
  readonly #raw: Socket;
  #isOver = false;

  constructor(raw: Socket) {
    super({ allowHalfOpen: false });
    this.#raw = raw;
    raw.on("data", (piece: Uint8Array) => this.#take(piece));
    raw.on("error", () => {}).once("close", () => this.#over());
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
    if (this.#isOver) return;
    const end = piece.indexOf(END);
    const isFull = end !== 0 && !this.push(end < 0 ? piece : piece.subarray(0, end));
    if (end >= 0) this.#over();
    else if (isFull) this.#raw.pause();
  }

  #over(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.push(null);
  }
}

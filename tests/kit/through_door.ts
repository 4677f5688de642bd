/**
 * A program that puts `pml serve` in the place of `pml stdio`: it starts one, sends each line of
 * its stdin to it over HTTP as a client of that revision does, and writes the responses to its
 * stdout. With it, a test for stdio is a test for HTTP. It ends PML when stdin ends, and exits with
 * the code of PML.
 *
 *     deno run -A through_door.ts
 *
 * @module
 */

import { Agent, type ClientRequest, type IncomingMessage, request } from "node:http";
import { parseExact } from "../../src/core/exact_json.ts";
import { type Command, denoCommand, pmlCommand } from "./pml_command.ts";

interface Message {
  readonly id?: number | string;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
}

/** The command of this program. */
export function throughDoor(): Command {
  return denoCommand("tests/kit/through_door.ts");
}

const NEWEST = "2026-07-28";
/** Fewer connections than one token may keep open. */
const SOCKETS = 700;
const NAMES = ["name", "uri", "taskId"];

/** A client of a `pml serve`. */
class Door {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: SOCKETS });
  readonly #url: URL;
  readonly #token: string;
  /** The headers of the session. */
  #session: Record<string, string> = {};
  readonly #open = new Map<unknown, ClientRequest>();

  readonly #options: Pick<DoorOptions, "write" | "warn">;

  constructor(
    { url, token, ...options }: Pick<DoorOptions, "write" | "warn"> & {
      readonly url: string;
      readonly token: string;
    },
  ) {
    this.#url = new URL(url);
    this.#token = token;
    this.#options = options;
  }

  /** Sends a message. Resolves when the next may be sent. */
  async send(message: Message): Promise<void> {
    const { id, method, params } = message;
    if (!isOfNewest(message) || method !== "notifications/cancelled") {
      const answered = this.#post(message)
        .catch((error) => this.#options.warn(lost(message, error)));
      if (method === "initialize") await answered;
      if (method === "notifications/initialized") void this.#listen().catch(() => {});
      return;
    }
    // In the newest revision, a client cancels a request by closing its connection.
    this.#open.get(params?.requestId)?.destroy();
    this.#open.delete(id);
  }

  /** Disconnects. */
  close(): void {
    for (const one of this.#open.values()) one.destroy();
    this.#agent.destroy();
  }

  async #post(message: Message): Promise<void> {
    const body = JSON.stringify(message);
    const headers = { "content-length": `${new TextEncoder().encode(body).length}` };
    const answer = await this.#sent("POST", { ...headersFor(message), ...headers }, {
      body,
      id: message.id,
    });
    const session = answer.headers["mcp-session-id"];
    if (message.method === "initialize" && typeof session === "string") {
      this.#session = { "mcp-session-id": session, "mcp-protocol-version": versionIn(message) };
    }
    await this.#write(answer, message.id);
    this.#open.delete(message.id);
  }

  /** Writes each message of a response as a line. */
  async #write(answer: IncomingMessage, id: Message["id"]): Promise<void> {
    for await (const text of messagesOf(answer)) {
      const line = lineOf(text, id);
      if (line !== undefined) this.#options.write(new TextEncoder().encode(`${line}\n`));
    }
  }

  /** Opens the stream of a session. */
  async #listen(): Promise<void> {
    await this.#write(await this.#sent("GET", {}, { id: "the stream" }), undefined);
  }

  #sent(
    method: string,
    more: Record<string, string>,
    { body, id }: { readonly body?: string; readonly id: unknown },
  ): Promise<IncomingMessage> {
    const headers = {
      "authorization": `Bearer ${this.#token}`,
      "content-type": "application/json",
      "accept": method === "GET" ? "text/event-stream" : "application/json, text/event-stream",
      ...this.#session,
      ...more,
    };
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const options = { method, headers, agent: this.#agent };
    const sending = request(this.#url, options, (answer) => {
      answer.on("error", () => {}); // reading it reports the error
      resolve(answer);
    });
    sending.on("error", reject);
    if (id !== undefined) this.#open.set(id, sending);
    sending.end(body);
    return promise;
  }
}

function isOfNewest({ params }: Message): boolean {
  const meta = params?._meta as Record<string, unknown> | undefined;
  return meta?.["io.modelcontextprotocol/protocolVersion"] === NEWEST;
}

function versionIn({ params }: Message): string {
  return String(params?.protocolVersion);
}

function headersFor(message: Message): Record<string, string> {
  const { method = "", params } = message;
  if (!isOfNewest(message)) return {};
  const name = NAMES.map((key) => params?.[key]).find((value) => typeof value === "string");
  const named = /^(tools\/call|prompts\/get|resources\/read|tasks\/)/.test(method);
  return {
    "mcp-protocol-version": NEWEST,
    "mcp-method": method,
    ...named && { "mcp-name": headerOf(String(name)) },
  };
}

/** Encodes a value for a header. */
function headerOf(value: string): string {
  if (/^[\x21-\x7e]+$/.test(value) && !value.startsWith("=?")) return value;
  return `=?base64?${new TextEncoder().encode(value).toBase64()}?=`;
}

/** Returns the texts of the messages of a response. */
async function* messagesOf(answer: IncomingMessage): AsyncGenerator<string> {
  const isStream = String(answer.headers["content-type"]).startsWith("text/event-stream");
  answer.setEncoding("utf8");
  // A long line arrives in many pieces, which are joined once.
  let parts: string[] = [];
  for await (const piece of answer as AsyncIterable<string>) {
    const [first = "", ...lines] = isStream ? piece.split("\n") : [piece];
    parts.push(first);
    for (const line of lines) {
      yield parts.join("");
      parts = [line];
    }
  }
  if (!isStream) yield `data: ${parts.join("")}`;
}

/** Returns the line of a message in an event; undefined for another line. */
function lineOf(line: string, id: Message["id"]): string | undefined {
  if (!line.startsWith("data: {")) return undefined;
  const text = line.slice("data: ".length);
  // A refusal of the HTTP endpoint has no id.
  const isRefusal = id !== undefined && text.length < 10_000 && JSON.parse(text).id === null;
  return isRefusal ? JSON.stringify({ ...JSON.parse(text), id }) : text;
}

function lost({ id, method }: Message, error: unknown): string {
  return `pml serve did not answer ${method} ${id}: ${error}`;
}

/** The options of `passThrough`. */
export interface DoorOptions {
  /** The output of `pml serve --json`. */
  readonly greeting: string;
  /** The bytes of the client. */
  readonly input: ReadableStream<Uint8Array>;
  /** Receives each message as a line, with its end. */
  readonly write: (bytes: Uint8Array) => void;
  /** Receives errors. */
  readonly warn: (text: string) => void;
}

/** Passes messages on until the input ends. */
export async function passThrough({ greeting, input, write, warn }: DoorOptions): Promise<void> {
  const { url, token } = JSON.parse(greeting);
  const door = new Door({ url, token: (await Deno.readTextFile(token)).trim(), write, warn });
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of input) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line.trim() !== "") await door.send(parseExact(line));
  }
  door.close();
}

async function main(): Promise<number> {
  const [program, ...args] = pmlCommand();
  const child = new Deno.Command(program, {
    args: [...args, "serve", "--port", "0", "--json"],
    stdin: "null",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  // A test that times out ends both at once.
  Deno.addSignalListener("SIGTERM", () => {
    child.kill("SIGKILL");
    Deno.exit(1);
  });
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const { value = "" } = await reader.read();
  if (value === "") return (await child.status).code;
  await passThrough({
    greeting: value,
    input: Deno.stdin.readable,
    write: (bytes) => {
      for (let at = 0; at < bytes.length;) at += Deno.stdout.writeSync(bytes.subarray(at));
    },
    warn: console.error,
  });
  child.kill("SIGTERM");
  const { code } = await child.status;
  await reader.cancel();
  return code;
}

if (import.meta.main) Deno.exit(await main());

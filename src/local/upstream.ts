/**
 * One running MCP server on stdio, and the requests to it. What it sends is believed in nothing:
 * lines that are no messages are passed over, answers count only under ids that were given out.
 *
 * @module
 */

import { randomBytes } from "node:crypto";
import type { Progress } from "../core/call.ts";
import { PmlError } from "../core/errors.ts";
import { isObject, type Json, type JsonObject, quoted, visible } from "../core/json.ts";
import { eachPiece, LineReader } from "../core/lines.ts";
import type { ToolDefinition } from "../core/tool.ts";
import { VERSION } from "../core/version.ts";
import { killGroup, type Process, type Program, startProcess } from "../sandbox/process.ts";
import { deniedIn } from "./_confined.ts";
import { Outbox } from "./_outbox.ts";
import type { Living } from "./pool.ts";

/** What a server is started with, and who is told of what. */
export interface UpstreamOptions {
  readonly name: string;
  readonly program: Program;
  /** An absolute path: what the server may take for its root. */
  readonly workspace: string;
  readonly limits: {
    readonly startMs: number;
    readonly lineBytes: number;
    readonly stderrBytes: number;
    readonly catalogTools: number;
  };
  /** Gives up the start. */
  readonly closing: AbortSignal;
  readonly onLog: (level: "debug" | "warn", text: string) => void;
  /** Told when the server says that its tools have changed. */
  readonly onToolsChanged: () => void;
  /** Keeps the process group, so that it ends with PML however it ends. */
  readonly groups: { add(pid: number): void; remove(pid: number): void };
}

/** How a request is waited for. */
export interface RequestOptions {
  readonly signal: AbortSignal;
  readonly onProgress?: ((progress: Progress) => void) | undefined;
}

interface Pending {
  readonly answer: PromiseWithResolvers<Json>;
  readonly onProgress: RequestOptions["onProgress"];
}

const LEGACY = "2025-11-25";
const MODERN = "2026-07-28";
const CLIENT = { name: "pml", version: VERSION };
const UNSUPPORTED_VERSION = -32022;
const NO_SUCH_METHOD = -32601;
/** How many lines that mean nothing a server may write before it counts as broken. */
const STRAY_MAX = 10_000;
const PAGES_MAX = 1_000;
const TAIL = 4_000;
const EOF_MS = 300;
const TERM_MS = 700;

/** A server that answered the handshake. */
export class Upstream implements Living {
  readonly #options: UpstreamOptions;
  readonly #process: Process;
  readonly #outbox: Outbox;
  readonly #pending = new Map<string, Pending>();
  readonly #prefix = randomBytes(9).toString("base64url");
  readonly #ended: Promise<void>;
  #last = 0;
  #stray = 0;
  #stderr = "";
  #isModern = false;
  #dead: PmlError | undefined;

  private constructor(options: UpstreamOptions) {
    this.#options = options;
    this.#process = startProcess(options.program);
    options.groups.add(this.#process.pid);
    this.#outbox = new Outbox(this.#process.stdin);
    this.#ended = this.#follow();
  }

  /** Starts a server and shakes hands: as the older revisions do, and as the newest if it asks for that. */
  static async start(options: UpstreamOptions): Promise<Upstream> {
    const { name, limits: { startMs }, closing } = options;
    using late = new StartTimer(name, startMs, closing);
    const upstream = launched(options);
    try {
      await upstream.#greet(late.signal);
      return upstream;
    } catch (error) {
      await upstream[Symbol.asyncDispose]();
      throw error;
    }

    function launched(what: UpstreamOptions): Upstream {
      try {
        return new Upstream(what);
      } catch (cause) {
        const { file } = what.program;
        throw new PmlError(
          "UPSTREAM_DOWN",
          `Cannot start ${quoted(name)}: ${quoted(file, 300)} does not run`,
          {
            hint: "Check its command in .pml.json",
            cause,
          },
        );
      }
    }
  }

  /** Whether it takes requests; one that ended never does again. */
  get alive(): boolean {
    return this.#dead === undefined;
  }

  /** How many requests are not answered yet. */
  get pending(): number {
    return this.#pending.size;
  }

  /** Sends a request and gives its result as it is; an error that the server answers is thrown. */
  async request(
    method: string,
    params: JsonObject,
    { signal, onProgress }: RequestOptions,
  ): Promise<Json> {
    if (this.#dead) throw this.#dead;
    signal.throwIfAborted();
    const id = `${this.#prefix}${++this.#last}`;
    const answer = Promise.withResolvers<Json>();
    const cancel = () => {
      this.#pending.delete(id);
      answer.reject(signal.reason);
      this.#outbox.send({ method: "notifications/cancelled", params: { requestId: id } });
    };
    this.#pending.set(id, { answer, onProgress });
    signal.addEventListener("abort", cancel, { once: true });
    try {
      const token = onProgress && { progressToken: id };
      this.#outbox.send({ id, method, params: this.#withMeta(params, token) });
      return await answer.promise;
    } finally {
      signal.removeEventListener("abort", cancel);
      this.#pending.delete(id);
    }
  }

  /** Reads all pages of the list of tools. */
  async tools(signal: AbortSignal): Promise<readonly ToolDefinition[]> {
    const tools: ToolDefinition[] = [];
    const seen = new Set<unknown>();
    let cursor: Json | undefined;
    for (let page = 0; page < PAGES_MAX; page++) {
      const result = await this.request("tools/list", cursor === undefined ? {} : { cursor }, {
        signal,
      });
      const { tools: some, nextCursor } = isObject(result) ? result : {};
      if (!Array.isArray(some)) throw this.#broken("its list of tools is none");
      tools.push(...some.filter(isTool));
      if (tools.length > this.#options.limits.catalogTools) {
        throw this.#broken("it has too many tools");
      }
      // An empty or repeated cursor ends a list that would have no end.
      if (typeof nextCursor !== "string" || nextCursor === "" || seen.has(nextCursor)) return tools;
      seen.add(nextCursor);
      cursor = nextCursor;
    }
    throw this.#broken("its list of tools has no end");
  }

  /** Ends the server: by the end of its input, by SIGTERM, by SIGKILL of its group. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#fail(this.#down("it was closed", false));
    await this.#outbox.close();
    const soon = async (ms: number) => {
      const timer = Promise.withResolvers<false>();
      const late = setTimeout(timer.resolve, ms, false);
      const isOver = await Promise.race([this.#ended.then(() => true), timer.promise]);
      clearTimeout(late);
      return isOver;
    };
    if (!await soon(EOF_MS)) {
      killGroup(this.#process.pid, "SIGTERM");
      await soon(TERM_MS);
    }
    killGroup(this.#process.pid);
    await this.#ended;
    this.#options.groups.remove(this.#process.pid);
  }

  async #greet(signal: AbortSignal): Promise<void> {
    try {
      await this.request("initialize", {
        protocolVersion: LEGACY,
        capabilities: { roots: {} },
        clientInfo: CLIENT,
      }, { signal });
      this.#outbox.send({ method: "notifications/initialized" });
    } catch (error) {
      if (!(error instanceof Answered) || error.code !== UNSUPPORTED_VERSION) {
        throw this.#refused(error);
      }
      this.#isModern = true;
      await this.request("server/discover", {}, { signal }).catch((cause) => {
        throw this.#refused(cause);
      });
    }
  }

  #refused(error: unknown): unknown {
    if (!(error instanceof Answered)) return error;
    return this.#broken(`it refused the handshake: ${error.message}`);
  }

  #withMeta(params: JsonObject, token: JsonObject | undefined): JsonObject {
    const envelope = this.#isModern
      ? {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": CLIENT,
        "io.modelcontextprotocol/clientCapabilities": {},
      }
      : undefined;
    if (token === undefined && envelope === undefined) return params;
    const own = isObject(params._meta) ? params._meta as JsonObject : {};
    return { ...params, _meta: { ...own, ...envelope, ...token } };
  }

  async #follow(): Promise<void> {
    const { stdout, stderr, status } = this.#process;
    await Promise.all([this.#read(stdout), this.#listen(stderr)]);
    const { code, signal } = await status;
    const how = signal === null ? `exit code ${code}` : `signal ${signal}`;
    this.#fail(this.#down(`its process ended with ${how}`, true));
    // What it started and left behind goes with it.
    killGroup(this.#process.pid);
  }

  async #read(stream: ReadableStream<Uint8Array>): Promise<void> {
    const reader = new LineReader(this.#options.limits.lineBytes);
    const decoder = new TextDecoder();
    await eachPiece(stream, (piece) => {
      for (const line of reader.push(piece)) {
        if (line.kind === "too-long") {
          this.#fail(this.#broken(`it wrote a line over ${line.max} bytes`));
        } else this.#take(parsed(decoder.decode(line.bytes)));
      }
    });
  }

  async #listen(stream: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    const { stderrBytes } = this.#options.limits;
    for await (const chunk of stream) {
      const text = decoder.decode(chunk, { stream: true });
      this.#stderr = (this.#stderr + text).slice(-stderrBytes);
      this.#options.onLog("debug", visible(text.trimEnd(), TAIL));
    }
  }

  #take(message: unknown): void {
    if (!isObject(message)) return this.#strayed();
    const { id, method, params, result, error } = message;
    if (typeof method === "string") {
      if (id === undefined) return this.#notified(method, params);
      return this.#asked(id as Json, method);
    }
    const pending = typeof id === "string" ? this.#pending.get(id) : undefined;
    if (pending === undefined) return this.#strayed();
    this.#pending.delete(String(id));
    if (error === undefined) return pending.answer.resolve(result as Json); // parsed JSON
    const { code, message: said } = isObject(error) ? error : {};
    pending.answer.reject(new Answered(Number(code), String(said)));
  }

  #notified(method: string, params: unknown): void {
    const said = isObject(params) ? params : {};
    switch (method) {
      case "notifications/progress": {
        const pending = this.#pending.get(String(said.progressToken));
        if (typeof said.progress === "number") pending?.onProgress?.(said as unknown as Progress);
        return;
      }
      case "notifications/message":
        return this.#options.onLog("debug", visible(JSON.stringify(said.data) ?? "", TAIL));
      case "notifications/tools/list_changed":
        return this.#options.onToolsChanged();
    }
  }

  /** Answers what a server may ask: whether we are there, and for its roots. */
  #asked(id: Json, method: string): void {
    if (method === "ping") return this.#outbox.send({ id, result: {} });
    if (method === "roots/list") {
      const uri = new URL(`file://${this.#options.workspace}`).href;
      return this.#outbox.send({ id, result: { roots: [{ uri, name: "workspace" }] } });
    }
    this.#outbox.send({
      id,
      error: { code: NO_SUCH_METHOD, message: `PML has no ${visible(method, 100)}` },
    });
  }

  #strayed(): void {
    if (++this.#stray <= STRAY_MAX) return;
    this.#fail(this.#broken(`it wrote over ${STRAY_MAX} lines that answer nothing`));
  }

  #broken(why: string): PmlError {
    return new PmlError("UPSTREAM_PROTOCOL", `Cannot use ${quoted(this.#options.name)}: ${why}`, {
      hint: "It does not speak MCP as PML knows it",
    });
  }

  #down(why: string, mayHaveRun: boolean): PmlError {
    const stderr = visible(this.#stderr.trim().slice(-TAIL), TAIL);
    const denied = deniedIn(this.#stderr);
    const message = `Cannot reach ${quoted(this.#options.name)}: ${denied ?? why}`;
    return new PmlError("UPSTREAM_DOWN", message, {
      hint: denied === undefined
        ? "Nothing was sent twice; the next call starts it again"
        : 'Grant it under "grants" in .pml.json, or take "confine" out',
      detail: { may_have_run: mayHaveRun, stderr },
    });
  }

  /** Ends it for good; what waits is told, and nothing is sent again. */
  #fail(error: PmlError): void {
    if (this.#dead) return;
    this.#dead = error;
    for (const { answer } of this.#pending.values()) answer.reject(error);
    this.#pending.clear();
    if (error.code === "UPSTREAM_PROTOCOL") killGroup(this.#process.pid);
  }
}

/** Bounds how long a server may take until it answers for the first time. */
export class StartTimer implements Disposable {
  /** Aborts with the error that says so, or with the reason of what closes all. */
  readonly signal: AbortSignal;
  readonly #abort = new AbortController();
  readonly #timer: ReturnType<typeof setTimeout>;

  /** Starts to count. */
  constructor(name: string, ms: number, closing: AbortSignal) {
    this.signal = AbortSignal.any([this.#abort.signal, closing]);
    const late = new PmlError("TIMED_OUT", `Cannot start ${quoted(name)}: no answer in ${ms} ms`, {
      hint: "Try its command by hand, or raise limits.start_ms in config.yaml",
    });
    this.#timer = setTimeout(() => this.#abort.abort(late), ms);
  }

  /** Stops counting. */
  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }
}

/** An error that a server answered. */
export class Answered extends Error {
  override readonly name = "Answered";
  /** The code of JSON-RPC. */
  readonly code: number;

  /** Keeps what it said. */
  constructor(code: number, message: string) {
    super(visible(message, 2_000));
    this.code = code;
  }
}

function isTool(value: unknown): value is ToolDefinition {
  return isObject(value) && typeof value.name === "string" && isObject(value.inputSchema);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // a log line, or half of a message
  }
}

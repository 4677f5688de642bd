/**
 * Starts the process of an MCP server, and exchanges messages with it through its pipes.
 *
 * @module
 */

import { NOTHING_RAN, PmlError } from "../../core/errors.ts";
import { type JsonObject, quoted } from "../../core/json.ts";
import { toOneLine } from "../../core/json_text.ts";
import { ByteBuffer, eachPiece, endsOf, type Line, LineReader } from "../../io/lines.ts";
import { settlesWithin } from "../../io/waiting.ts";
import type { Denial, ServerRevisions, Wire, WireEvents } from "../client/wire.ts";
import { readText } from "../../protocol/message.ts";
import {
  type Process,
  residentBytes,
  type SpareKeeper,
  StartedProgram,
} from "../../sandbox/process.ts";
import type { Program } from "../../sandbox/program.ts";
import { causeIn, putErrorFirst, withoutColours } from "../../core/program_output.ts";
import { ContainerEnd, containerRun } from "./_container.ts";
import { missingVariables } from "./_missing_variables.ts";
import type { ServerProgram } from "./own_program.ts";
import type { ServerLog } from "../server_log.ts";
import type { ProgramHost, WireLimits } from "./program_host.ts";

/** The server that a process runs: its name, its program, its log and its revisions. */
interface WireServer {
  readonly name: string;
  readonly program: ServerProgram;
  /** Stores the output of the server on stderr. */
  readonly log?: ServerLog | undefined;
  /** Remembers the revisions of the server. */
  readonly revisions?: ServerRevisions | undefined;
}

/** The machine that runs the process. */
type WireHost = Pick<
  ProgramHost,
  "groups" | "limits" | "waitForMemory" | "spare" | "withoutSecrets"
>;

/** How long a process may take to end after its input was closed, in milliseconds. */
const EOF_MS = 300;
/** How long a process may take to end after SIGTERM, in milliseconds. */
const TERM_MS = 700;
/** The maximum length of a line on stderr, in characters. A longer line is dropped. */
const LINE_MAX = 256_000;
/** The maximum number of characters of a server's last output that an error contains. */
const TAIL_MAX = 4_000;

/** A process that speaks MCP on its pipes. */
export class StdioWire implements Wire {
  /** Always true: a process can send notifications while it runs. */
  readonly reportsChanges = true;
  readonly revisions: ServerRevisions | undefined;
  readonly #name: string;
  readonly #program: ServerProgram;
  readonly #log: ServerLog | undefined;
  readonly #host: WireHost;
  readonly #limits: WireLimits;
  readonly #events: WireEvents;
  readonly #started: StartedProgram;
  readonly #process: Process;
  readonly #container: ContainerEnd | undefined;
  #containerEnded: Promise<void> | undefined;
  readonly #outbox: Outbox;
  readonly #exit: Promise<void>;
  /** Whether further messages of the server are ignored, because it was killed. */
  #ignoresMessages = false;
  #stderr = "";
  /** The start of an incomplete line; undefined while a line that is too long continues. */
  #line: string | undefined = "";

  /** Starts the process. */
  constructor(
    { name, program: serverProgram, log: serverLog, revisions }: WireServer,
    host: WireHost,
    events: WireEvents,
  ) {
    this.#name = name;
    this.#program = serverProgram;
    this.#log = serverLog;
    this.#host = host;
    this.#limits = host.limits;
    this.#events = events;
    this.revisions = revisions;
    const { program } = serverProgram;
    const run = containerRun(program);
    // The helper must run before the container starts.
    this.#container = run && new ContainerEnd(program, run);
    try {
      this.#started = startProgram(name, { ...program, ...run && { args: run.args } }, host.spare);
    } catch (error) {
      void this.#container?.end({ hasEnded: true });
      throw error;
    }
    this.#process = this.#started.running;
    host.groups.add(this.#process.pid);
    this.#outbox = new Outbox(this.#process.stdin, this.#limits.lineBytes, events);
    this.#exit = this.#follow();
  }

  /** Returns the resident memory of the process and its child processes, in bytes. */
  rss(): number {
    return residentBytes(this.#process.pid);
  }

  /** Sends a JSON-RPC message. */
  send(message: JsonObject): void {
    this.#outbox.add(message);
  }

  /**
   * Returns the error for requests that will not be answered, with the last output of the process.
   * `mayHaveRun` is whether the server may have received such a request.
   */
  downError(why: string, mayHaveRun: boolean): PmlError {
    const [stderr, denial] = [this.#output, this.denial("")];
    const what = denial?.why ?? `${why}${causeIn(stderr)}`;
    const outcome = mayHaveRun
      ? "The call may have run: check its effects before you repeat it. The next call starts the " +
        "server again"
      : `${NOTHING_RAN}; the next call starts it again`;
    // A call may fail for other reasons, and the variables of a container come from its arguments.
    const isSure = !mayHaveRun && this.#container === undefined;
    const missing = isSure ? missingVariables(stderr, this.#program.program.env) : [];
    const hints = [this.#variablesHint(missing), this.#program.hint(), outcome].filter(Boolean);
    return new PmlError("UPSTREAM_DOWN", `Cannot reach ${quoted(this.#name)}: ${what}`, {
      hint: denial?.hint ?? hints.join(". "),
      detail: {
        may_have_run: mayHaveRun,
        stderr: putErrorFirst(stderr, TAIL_MAX),
        ...(missing.length > 0 && { missing_variables: missing }),
      },
    });
  }

  /** Returns the command that passes missing variables to the server; undefined without any. */
  #variablesHint(names: readonly string[]): string | undefined {
    if (names.length === 0) return undefined;
    const pairs = names.map((name) => `--env '${name}=\${${name}}'`).join(" ");
    return `A server receives only the variables of its definition: \`pml add ${this.#name} ` +
      `--replace ${pairs}\` adds ${names.join(", ")}`;
  }

  /** Returns the permission that the server lacks, found in `text` or in its output. */
  denial(text: string): Denial | undefined {
    return this.#program.denial(text) ?? this.#program.denial(this.#output);
  }

  /** Kills the process and all processes that it started. */
  kill(): void {
    this.#ignoresMessages = true;
    this.#started.kill();
  }

  /**
   * Ends the process: closes its input, then sends SIGTERM, then kills it and all processes that it
   * started.
   */
  async close(): Promise<void> {
    // Does not wait, because the server may not read its input.
    void this.#outbox.close();
    if (!await settlesWithin(this.#exit, EOF_MS)) {
      this.#started.signal("SIGTERM");
      await settlesWithin(this.#exit, TERM_MS);
    }
    this.kill();
    await this.#exit;
    await this.#containerEnded;
    this.#host.groups.remove(this.#process.pid);
  }

  get #output(): string {
    return this.#stderr + this.#host.withoutSecrets(withoutColours(this.#line ?? ""));
  }

  async #follow(): Promise<void> {
    const { stdout, stderr, status } = this.#process;
    // A process that has closed its output cannot answer, so it is killed.
    const read = this.#read(stdout).finally(async () => {
      if (!await settlesWithin(status, EOF_MS)) this.#started.kill();
    });
    const output = Promise.all([read, this.#readOutput(stderr)]);
    // An error is handled when the process has ended.
    output.catch(() => {});
    const { code, signal } = await status;
    this.#containerEnded = this.#container?.end({ hasEnded: signal === null });
    // Kills child processes that still run, because they keep the output open.
    this.#started.kill();
    await settlesWithin(output, EOF_MS);
    this.#log?.[Symbol.dispose]();
    const how = signal === null ? `exit code ${code}` : `signal ${signal}`;
    this.#events.onEnd(`its process ended with ${how}`);
  }

  async #read(stream: ReadableStream<Uint8Array>): Promise<void> {
    const { waitForMemory } = this.#host;
    const reader = new LineReader(this.#limits.lineBytes, this.#limits.resultBytes);
    const take = (line: Line) => {
      if (!this.#ignoresMessages) this.#receive(line);
    };
    try {
      await eachPiece(stream, (piece) => {
        reader.push(piece, take);
        return this.#ignoresMessages ? undefined : waitForMemory?.(reader, reader.bytes);
      });
    } finally {
      waitForMemory?.(reader, 0);
    }
  }

  #receive(line: Line): void {
    const events = this.#events;
    if (line.kind === "too-long") {
      return events.onProtocolError(`it wrote a line over ${line.max} bytes`);
    }
    if (line.kind === "cut") {
      const { size, max } = line;
      const why = `it has ${size} bytes, more than ${max}`;
      return events.onExcess(line.ends, { why, detail: { size, max } });
    }
    const read = readText(line.bytes, "server");
    if (read.kind === "excess") return events.onExcess(endsOf(line.bytes), { why: read.why });
    events.onMessage(this.#program.withExplanation(read.value));
  }

  async #readOutput(stream: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    for await (const chunk of stream) this.#takeOutput(decoder.decode(chunk, { stream: true }));
    if (this.#line) this.#takeOutput("\n");
  }

  /**
   * Handles whole lines only: a secret that is divided between two pieces would not be recognized.
   */
  #takeOutput(text: string): void {
    const end = text.lastIndexOf("\n") + 1;
    const line = (this.#line ?? "") + text.slice(end);
    if (end === 0) {
      this.#line = this.#line === undefined || line.length > LINE_MAX ? undefined : line;
      return;
    }
    const from = this.#line === undefined ? text.indexOf("\n") + 1 : 0;
    let lines = (this.#line ?? "") + text.slice(from, end);
    // A secret that contains codes for colours would not be recognized.
    // guard: secret-coloured
    lines = withoutColours(lines);
    lines = this.#host.withoutSecrets(lines);
    this.#line = text.slice(end);
    this.#stderr = (this.#stderr + lines).slice(-this.#limits.stderrBytes);
    this.#log?.add(lines);
    this.#events.onOutput(lines);
  }
}

function startProgram(
  name: string,
  program: Program,
  spare: SpareKeeper | undefined,
): StartedProgram {
  try {
    return new StartedProgram({ ...program, hasKeeper: true }, spare);
  } catch (cause) {
    if (cause instanceof PmlError) throw cause;
    const message = `Cannot start ${quoted(name)}: ${quoted(program.file, 300)} cannot be run`;
    throw new PmlError("UPSTREAM_DOWN", message, { hint: "Check its command", cause });
  }
}

/** Queues and writes the messages to a process. */
class Outbox {
  readonly #stdin: WritableStreamDefaultWriter<Uint8Array>;
  readonly #max: number;
  readonly #events: Pick<WireEvents, "onProtocolError">;
  #unsent = "";
  /** The bytes that are being written, in memory that is used again. */
  readonly #bytes = new ByteBuffer();
  #waiting = 0;
  #isWriting = false;

  /**
   * `max` is the maximum number of characters that wait. A message that would exceed it is dropped
   * and reported as a protocol error: the process does not read its input.
   */
  constructor(
    stdin: WritableStream<Uint8Array>,
    max: number,
    events: Pick<WireEvents, "onProtocolError">,
  ) {
    this.#stdin = stdin.getWriter();
    this.#max = max;
    this.#events = events;
  }

  /** Adds a JSON-RPC message, which is sent soon. */
  add(message: JsonObject): void {
    const members = toOneLine(JSON.stringify(message)).slice(1);
    const line = `{"jsonrpc":"2.0",${members}\n`;
    // A message may have any length if no other one waits.
    if (this.#waiting > 0 && this.#waiting + line.length > this.#max) {
      return this.#events.onProtocolError("it does not read its input");
    }
    this.#waiting += line.length;
    if (this.#unsent === "" && !this.#isWriting) queueMicrotask(() => void this.#flush());
    this.#unsent += line;
  }

  /** Closes the standard input. */
  async close(): Promise<void> {
    await this.#stdin.close().catch(() => {}); // the process has closed it already
  }

  // Messages that are added during a write are written together by the next write.
  async #flush(): Promise<void> {
    this.#isWriting = true;
    while (this.#unsent !== "") {
      const text = this.#unsent;
      this.#unsent = "";
      // A broken pipe is reported by the end of the process. The memory is used again after the
      // write.
      await this.#stdin.write(this.#bytes.addText(text)).catch(() => {});
      this.#bytes.clear();
      this.#waiting -= text.length;
    }
    this.#isWriting = false;
  }
}

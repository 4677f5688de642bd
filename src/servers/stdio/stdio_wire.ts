/**
 * Connects to an MCP server through the pipes of its process. Lines that are not messages are
 * ignored.
 *
 * @module
 */

import { PmlError } from "../../core/errors.ts";
import { type JsonObject, quoted } from "../../core/json.ts";
import { inOneLine } from "../../core/json_text.ts";
import { eachPiece, endsOf, Gathered, type Line, LineReader } from "../../io/lines.ts";
import { soon } from "../../io/waiting.ts";
import type { Denial, ServerRevisions, Wire, WireEvents } from "../client/wire.ts";
import { readText } from "../../protocol/message.ts";
import { type Process, type SpareKeeper, StartedProgram } from "../../sandbox/process.ts";
import type { Program } from "../../sandbox/program.ts";
import { causeIn, errorFirst, withoutColours } from "../../core/program_output.ts";
import { ContainerEnd, containerRun } from "./_container.ts";
import { withRemark } from "./_denial.ts";
import type { LaunchedProgram } from "./_launched_program.ts";
import type { ServerLog } from "../server_log.ts";
import type { ProgramHost } from "./program_host.ts";

/** The limits of the output of a process, in bytes. */
export interface WireLimits {
  readonly lineBytes: number;
  readonly resultBytes: number;
  readonly stderrBytes: number;
}

/** The server of a process, with its log and its revisions. */
interface WireServer {
  readonly name: string;
  readonly launched: LaunchedProgram;
  /** Keeps the server's output that is not a message. */
  readonly log?: ServerLog | undefined;
  /** Remembers the revisions of the server. */
  readonly revisions?: ServerRevisions | undefined;
}

/** The machine that runs the process. */
type WireHost = Pick<ProgramHost, "groups" | "limits" | "room" | "spare" | "withoutSecrets">;

const EOF_MS = 300;
const TERM_MS = 700;
/** The maximum length of a line on stderr, in characters. A longer line is dropped. */
const LINE_MAX = 256_000;
/** How many characters of a server's last output are shown. */
const TAIL = 4_000;

/** A process that speaks MCP on its pipes. */
export class StdioWire implements Wire {
  /** Its pipes are open as long as it runs. */
  readonly tells = true;
  readonly revisions: ServerRevisions | undefined;
  readonly #name: string;
  readonly #launched: LaunchedProgram;
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
  /** Whether its further messages are ignored. */
  #isGivenUp = false;
  #stderr = "";
  /** The part of a line without its end; undefined while a line that is too long goes on. */
  #line: string | undefined = "";

  /** Starts the process. */
  constructor(
    { name, launched, log: serverLog, revisions }: WireServer,
    host: WireHost,
    events: WireEvents,
  ) {
    this.#name = name;
    this.#launched = launched;
    this.#log = serverLog;
    this.#host = host;
    this.#limits = host.limits;
    this.#events = events;
    this.revisions = revisions;
    const { program } = launched;
    const run = containerRun(program);
    // This process must run before the container does.
    this.#container = run && new ContainerEnd(program, run);
    try {
      this.#started = started(name, { ...program, ...run && { args: run.args } }, host.spare);
    } catch (error) {
      void this.#container?.end({ isOver: true });
      throw error;
    }
    this.#process = this.#started.running;
    host.groups.add(this.#process.pid);
    this.#outbox = new Outbox(this.#process.stdin, this.#limits.lineBytes, events);
    this.#exit = this.#follow();
  }

  /** Sends a JSON-RPC message. */
  send(message: JsonObject): void {
    this.#outbox.add(message);
  }

  /**
   * Returns the error for requests that will not be answered, with the last output of the process.
   */
  down(why: string, mayHaveRun: boolean): PmlError {
    const [stderr, denial] = [this.#output, this.denial("")];
    const what = denial?.why ?? `${why}${causeIn(stderr)}`;
    const next = "the next call starts it again";
    const again = [
      mayHaveRun ? `Nothing was sent twice; ${next}` : `Nothing was run; ${next}`,
      this.#launched.hint(),
    ];
    return new PmlError("UPSTREAM_DOWN", `Cannot reach ${quoted(this.#name)}: ${what}`, {
      hint: denial?.hint ?? again.filter(Boolean).join(". "),
      detail: { may_have_run: mayHaveRun, stderr: errorFirst(stderr, TAIL) },
    });
  }

  /** Returns the permission that the server lacks, from `text` or from its output. */
  denial(text: string): Denial | undefined {
    return this.#launched.denial(text) ?? this.#launched.denial(this.#output);
  }

  /** Kills the process and all processes that it started. */
  kill(): void {
    this.#isGivenUp = true;
    this.#started.kill();
  }

  /**
   * Ends the process: closes its input, then sends SIGTERM, then kills it and all processes that it
   * started.
   */
  async close(): Promise<void> {
    // A server that reads nothing is not waited for.
    void this.#outbox.close();
    if (!await soon(this.#exit, EOF_MS)) {
      this.#started.signal("SIGTERM");
      await soon(this.#exit, TERM_MS);
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
    // Without its output, the process cannot answer.
    const read = this.#read(stdout).finally(async () => {
      if (!await soon(status, EOF_MS)) this.#started.kill();
    });
    const output = Promise.all([read, this.#hear(stderr)]);
    // Handled when the process has ended.
    output.catch(() => {});
    const { code, signal } = await status;
    this.#containerEnded = this.#container?.end({ isOver: signal === null });
    // Kills processes that the program started and that still run: they keep its output open.
    this.#started.kill();
    await soon(output, EOF_MS);
    this.#log?.[Symbol.dispose]();
    const how = signal === null ? `exit code ${code}` : `signal ${signal}`;
    this.#events.onEnd(this.down(`its process ended with ${how}`, true));
  }

  async #read(stream: ReadableStream<Uint8Array>): Promise<void> {
    const { room } = this.#host;
    const reader = new LineReader(this.#limits.lineBytes, this.#limits.resultBytes);
    const take = (line: Line) => {
      if (!this.#isGivenUp) this.#take(line);
    };
    try {
      await eachPiece(stream, (piece) => {
        reader.push(piece, take);
        return this.#isGivenUp ? undefined : room?.(reader, reader.bytes);
      });
    } finally {
      room?.(reader, 0);
    }
  }

  #take(line: Line): void {
    const events = this.#events;
    if (line.kind === "too-long") {
      return events.onProtocolError(`it wrote a line over ${line.max} bytes`);
    }
    if (line.kind === "cut") {
      const { size, max } = line;
      const why = `it has ${size} bytes, more than ${max}`;
      return events.excess(line.ends, { why, detail: { size, max } });
    }
    const read = readText(line.bytes, "server");
    if (read.kind === "excess") return events.excess(endsOf(line.bytes), { why: read.why });
    const launched = this.#launched;
    events.onMessage(launched.isConfined ? withRemark(read.value, launched) : read.value);
  }

  async #hear(stream: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    for await (const chunk of stream) this.#takeOutput(decoder.decode(chunk, { stream: true }));
    if (this.#line) this.#takeOutput("\n");
  }

  /** Takes whole lines only, because a secret that is cut in two would not be recognized. */
  #takeOutput(text: string): void {
    const end = text.lastIndexOf("\n") + 1;
    const line = (this.#line ?? "") + text.slice(end);
    if (end === 0) {
      this.#line = this.#line === undefined || line.length > LINE_MAX ? undefined : line;
      return;
    }
    const from = this.#line === undefined ? text.indexOf("\n") + 1 : 0;
    let lines = (this.#line ?? "") + text.slice(from, end);
    // A secret with colours in it would not be recognized.
    // guard: secret-coloured
    lines = withoutColours(lines);
    lines = this.#host.withoutSecrets(lines);
    this.#line = text.slice(end);
    this.#stderr = (this.#stderr + lines).slice(-this.#limits.stderrBytes);
    this.#log?.add(lines);
    this.#events.onOutput(lines);
  }
}

function started(
  name: string,
  program: Program,
  spare: SpareKeeper | undefined,
): StartedProgram {
  try {
    return new StartedProgram({ ...program, kept: true }, spare);
  } catch (cause) {
    if (cause instanceof PmlError) throw cause;
    const message = `Cannot start ${quoted(name)}: ${quoted(program.file, 300)} cannot be run`;
    throw new PmlError("UPSTREAM_DOWN", message, { hint: "Check its command", cause });
  }
}

/** The messages to a process. */
class Outbox {
  readonly #stdin: WritableStreamDefaultWriter<Uint8Array>;
  readonly #max: number;
  readonly #events: Pick<WireEvents, "onProtocolError">;
  readonly #unsent: string[] = [];
  /** The bytes of a piece while it is written, in memory that is used again. */
  readonly #bytes = new Gathered();
  #waiting = 0;
  #isWriting = false;

  /**
   * Takes the standard input of the process, and how many characters may wait. The process is broken
   * if a message would exceed that; the message is dropped.
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
    const line = `${inOneLine(JSON.stringify({ jsonrpc: "2.0", ...message }))}\n`;
    // A single message may have any length.
    if (this.#waiting > 0 && this.#waiting + line.length > this.#max) {
      return this.#events.onProtocolError("it does not read its input");
    }
    this.#waiting += line.length;
    this.#unsent.push(line);
    if (this.#unsent.length === 1 && !this.#isWriting) queueMicrotask(() => void this.#flush());
  }

  /** Closes the standard input. */
  async close(): Promise<void> {
    await this.#stdin.close().catch(() => {}); // its other end is gone already
  }

  // While one piece is written, more messages can come.
  async #flush(): Promise<void> {
    this.#isWriting = true;
    while (this.#unsent.length > 0) {
      const text = this.#unsent.splice(0).join("");
      // A broken pipe is reported by the end of the process. The memory is used again after the write.
      await this.#stdin.write(this.#bytes.addText(text)).catch(() => {});
      this.#bytes.clear();
      this.#waiting -= text.length;
    }
    this.#isWriting = false;
  }
}

/**
 * Runs Deno's language server to check types. The server reads one text, resolves no other module,
 * and has no access to the network.
 *
 * @module
 */

import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { isObject } from "../core/json.ts";
import { boundedJson } from "../core/json_bounds.ts";
import { writeFileWhole } from "../io/cache_files.ts";
import { joinBytes } from "../io/lines.ts";
import { privateFolder } from "../io/private_files.ts";
import { AnsweringProcess, type ProcessOwner } from "../sandbox/answering_process.ts";
import type { Reaper } from "../sandbox/reaper.ts";
import { DENO_QUIET } from "../sandbox/deno_flags.ts";

/** A compiler error at a position of a text. Lines and columns start at 0. */
export interface Diagnostic {
  readonly code: number;
  readonly message: string;
  readonly line: number;
  readonly column: number;
  /** The lines of the same text that the error refers to. */
  readonly related: readonly number[];
}

/** Most language servers check only a few texts, so optimizing the compiler's code does not pay. */
const V8_FLAGS = "--max-old-space-size=1024,--no-opt";
const LONGEST_FRAME = 32 << 20;
const LONGEST_HEAD = 1_000;
/** The severity of errors in the language server protocol. */
const ERROR = 1;
/**
 * The libraries of Deno's types without `deno.shared_globals`, which loads all types of Node.
 * Node's types would take half of the startup time and a quarter of the memory.
 */
const LIBRARIES = [
  "esnext",
  ...["ns", "console", "url", "web", "webgpu", "canvas", "fetch", "websocket", "crypto"]
    .map((name) => `deno.${name}`),
  ...["deno.broadcast_channel", "deno.webstorage"],
];
/** An address without a server, used as registry and as proxy, so that imports load nothing. */
const NOWHERE = "http://127.0.0.1:1/";

/** A running language server. */
export class LanguageServer implements ProcessOwner, AsyncDisposable {
  readonly #process: AnsweringProcess;
  readonly #folder: string;
  readonly #ready: Promise<unknown>;
  #nextId = 0;
  #isOpen = false;

  /**
   * Starts the process in a folder that contains only its settings. `groups` is the reaper, which
   * ends the process if PML ends first.
   */
  constructor(folder: string, groups: Pick<Reaper, "mark" | "add" | "remove">) {
    this.#folder = folder;
    privateFolder(folder);
    writeFileWhole(join(folder, "deno.json"), settingsIn(folder), { by: folder });
    const program = {
      file: Deno.execPath(),
      args: ["lsp", "--quiet"],
      cwd: folder,
      env: environmentIn(folder, groups.mark),
    };
    this.#process = new AnsweringProcess(program, groups, this);
    this.#ready = this.#initialize();
    this.#ready.catch(() => {}); // the first check reports it
  }

  /** Whether the process can no longer check texts. */
  get isOver(): boolean {
    return this.#process.isOver;
  }

  /** Returns the memory of the process in bytes. */
  bytes(): number {
    return this.#process.memoryBytes();
  }

  /** Resolves when the process is ready; rejects if it ends before. */
  get ready(): Promise<unknown> {
    return this.#ready;
  }

  /** Returns the errors in a text. Only one check may run at a time. */
  async check(text: string): Promise<readonly Diagnostic[]> {
    await this.#ready;
    return await this.#diagnose(text);
  }

  async #diagnose(text: string): Promise<readonly Diagnostic[]> {
    const uri = this.#address("code.ts");
    const version = ++this.#nextId;
    // Changing one document is cheaper than opening a new one for each check.
    if (this.#isOpen) {
      const textDocument = { uri, version };
      this.#send({
        method: "textDocument/didChange",
        params: { textDocument, contentChanges: [{ text }] },
      });
    } else {
      const textDocument = { uri, languageId: "typescript", version, text };
      this.#send({ method: "textDocument/didOpen", params: { textDocument } });
      this.#isOpen = true;
    }
    const report = await this.#request("textDocument/diagnostic", { textDocument: { uri } });
    if (!isObject(report) || !Array.isArray(report.items)) {
      throw new Error("it returned no diagnostics");
    }
    return report.items.flatMap((item) => diagnosticOf(item, uri));
  }

  /** Ends the process. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process.close(new Error("it was ended"));
  }

  /** Ends the process at once. Pending checks fail with this reason. */
  end(why: string): void {
    this.#process.end(new Error(why));
  }

  async #initialize(): Promise<void> {
    const rootUri = this.#address("");
    await this.#request("initialize", {
      processId: Deno.pid,
      rootUri,
      workspaceFolders: [{ uri: rootUri, name: "code" }],
      capabilities: { textDocument: { diagnostic: {} } },
      initializationOptions: {
        enable: true,
        config: "./deno.json",
        cacheOnSave: false,
        lint: false,
        suggest: { imports: { autoDiscover: false, hosts: {} } },
      },
    });
    this.#send({ method: "initialized", params: {} });
    // The first check loads the compiler's own types, which takes longer than most checks do. So
    // this check is made before the process is ready.
    await this.#diagnose("");
  }

  #address(name: string): string {
    return pathToFileURL(join(this.#folder, name)).href;
  }

  async #request(method: string, params: unknown): Promise<unknown> {
    const id = ++this.#nextId;
    const answer = this.#process.answer(id);
    this.#send({ id, method, params });
    return await answer;
  }

  #send(message: Readonly<Record<string, unknown>>): void {
    const body = new TextEncoder().encode(JSON.stringify({ jsonrpc: "2.0", ...message }));
    const head = new TextEncoder().encode(`Content-Length: ${body.length}\r\n\r\n`);
    this.#process.write(joinBytes([head, body]));
  }

  /** Drops the log of the process. */
  readErrors(stderr: ReadableStream<Uint8Array>): Promise<void> {
    return stderr.pipeTo(new WritableStream());
  }

  /** Returns the error for a process that ended by itself. */
  endError(how: string): Error {
    return new Error(`it ended with ${how}`);
  }

  /** Reads the messages of the process. */
  async readAnswers(stream: ReadableStream<Uint8Array>): Promise<void> {
    const frames = new Frames();
    for await (const piece of stream) {
      for (const frame of frames.push(piece)) this.#receive(boundedJson(frame));
    }
  }

  #receive(message: unknown): void {
    if (!isObject(message) || typeof message.id !== "number") return;
    // The server sends requests, too. An empty result answers all of them.
    if (message.method !== undefined) return this.#send({ id: message.id, result: null });
    const waiting = this.#process.takeRequest(message.id);
    if (message.error === undefined) return waiting?.resolve(message.result);
    waiting?.reject(new Error("it could not check the code"));
  }
}

/** Splits a stream into the frames of the language server protocol. */
class Frames {
  #bytes = new Uint8Array();

  /** Adds a piece and returns the complete frames. */
  push(piece: Uint8Array): readonly Uint8Array[] {
    const all = joinBytes([this.#bytes, piece]);
    const frames: Uint8Array[] = [];
    let at = 0;
    for (;;) {
      const head = new TextDecoder().decode(all.subarray(at, at + LONGEST_HEAD));
      const end = head.indexOf("\r\n\r\n");
      const length = Number(/^content-length: (\d+)/im.exec(head.slice(0, end))?.[1] ?? 0);
      if (end < 0 && head.length >= LONGEST_HEAD || length > LONGEST_FRAME) {
        throw new Error("it wrote something that is not a message");
      }
      const from = at + end + 4;
      if (end < 0 || all.length < from + length) break;
      frames.push(all.subarray(from, at = from + length));
    }
    this.#bytes = all.slice(at);
    return frames;
  }
}

/** Returns the settings: the compiler options, and an import map that resolves to no module. */
function settingsIn(folder: string): string {
  const nothing = pathToFileURL(join(folder, "nothing", "/")).href;
  return JSON.stringify({
    imports: { "file:///": nothing, "http://": nothing, "https://": nothing },
    lock: false,
    nodeModulesDir: "none",
    compilerOptions: { lib: LIBRARIES, strict: true, useUnknownInCatchVariables: false },
  });
}

function environmentIn(folder: string, mark: string): Readonly<Record<string, string>> {
  return {
    ...DENO_QUIET,
    DENO_DIR: join(folder, "deno"),
    DENO_NO_PACKAGE_JSON: "1",
    DENO_V8_FLAGS: V8_FLAGS,
    HOME: folder,
    HTTP_PROXY: NOWHERE,
    HTTPS_PROXY: NOWHERE,
    JSR_URL: NOWHERE,
    NPM_CONFIG_REGISTRY: NOWHERE,
    // The reaper kills processes whose variable begins with the mark.
    PML_RUN: `${mark}.`,
  };
}

function diagnosticOf(item: unknown, uri: string): readonly Diagnostic[] {
  if (!isObject(item) || item.severity !== ERROR || item.source !== "deno-ts") return [];
  const { code, message, relatedInformation } = item;
  const related = Array.isArray(relatedInformation) ? relatedInformation : [];
  const { line, character } = startOf(item);
  return [{
    code: Number(code),
    message: String(message),
    line,
    column: character,
    related: related.flatMap(({ location }) =>
      isObject(location) && location.uri === uri ? startOf(location).line : []
    ),
  }];
}

function startOf(located: Record<string, unknown>): { line: number; character: number } {
  // The language server protocol defines these members.
  const { start } = located.range as { start: { line: number; character: number } };
  return start;
}

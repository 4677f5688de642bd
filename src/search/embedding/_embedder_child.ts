/**
 * Runs one process of the embedding model: texts are sent to it, vectors come back. It may read the
 * library and the pinned files of the model, and nothing else. Its answers are checked before they
 * are used.
 *
 * @module
 */

import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { durationText } from "../../core/amounts.ts";
import { PmlError } from "../../core/errors.ts";
import { isObject, objectOf, visible } from "../../core/json.ts";
import { boundedJson } from "../../core/json_bounds.ts";
import { errorFirst } from "../../core/program_output.ts";
import { eachPiece, endsOf, type Line, LineReader } from "../../io/lines.ts";
import { after } from "../../io/waiting.ts";
import { AnsweringProcess, type ProcessOwner } from "../../sandbox/answering.ts";
import { DENO_ALONE, DENO_QUIET, programUrl } from "../../sandbox/alone.ts";
import { embedderCode } from "../../sandbox/embedder_program.ts";
import type { EmbedderRequest, EmbedderStart } from "../../sandbox/boot/embedder.ts";
import type { Program } from "../../sandbox/program.ts";
import type { EmbeddingModel } from "./embedding_model.ts";

/** The options of a child. */
export interface EmbedderChildOptions {
  /** The folder of the library. */
  readonly library: string;
  readonly model: EmbeddingModel;
  /** The folder for Deno's cache of the library, which makes the next start faster. */
  readonly denoDir: string;
  /** How long loading the model may take. */
  readonly startMs: number;
  /** How long an answer may take; 60,000 by default. */
  readonly answerMs?: number;
  /** The memory, in bytes, that it may use in addition to several times the model's size. */
  readonly spareBytes?: number;
  /** Records the process group, so that it ends with PML, however PML ends. */
  readonly groups: { readonly mark: string; add(pid: number): void; remove(pid: number): void };
}

/** A vector for each text; undefined for a text for which the model returns no vector. */
export type TextVectors = readonly (Float32Array | undefined)[];

const HEAP_MB = 1_024;
const SPARE_BYTES = 768 << 20;
const MODEL_TIMES = 6;
const LOOK_MS = 100;
const ANSWER_MS = 60_000;
const LONGEST_LINE = 64 << 20;
const MOST_DIMENSIONS = 8_192;
const TAIL = 2_000;
const RUNTIME = "ort.wasm.bundle.min.mjs";

/** A running child. */
export class EmbedderChild implements ProcessOwner, AsyncDisposable {
  readonly #options: EmbedderChildOptions;
  readonly #process: AnsweringProcess;
  #next = 0;
  #watch: ReturnType<typeof setInterval> | undefined;
  #stderr = "";

  /** Starts the process, which loads the model at once. */
  constructor(options: EmbedderChildOptions) {
    const { groups, library, model } = options;
    this.#options = options;
    this.#process = new AnsweringProcess(programOf(options), groups, this);
    const start: EmbedderStart = {
      library: addressOf(library, "transformers.web.min.js"),
      wasm: addressOf(library, "ort-wasm-simd-threaded.wasm"),
      model: `${addressOf(model.folder)}/`,
      dtype: model.dtype,
    };
    this.#write(start);
  }

  /** Resolves when the model is loaded. */
  async loaded(): Promise<void> {
    await this.#answer(0, this.#options.startMs);
  }

  /** Whether it can take no more requests. */
  get isOver(): boolean {
    return this.#process.isOver;
  }

  /** Returns a vector for each text. All have the same length. */
  async embed(texts: readonly string[]): Promise<TextVectors> {
    const request: EmbedderRequest = { id: ++this.#next, texts };
    const answer = this.#answer(texts.length, this.#options.answerMs ?? ANSWER_MS);
    this.#write(request);
    return await answer;
  }

  /** Ends the process. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process.close(new PmlError("CANCELLED", "Cannot embed: the embedder was ended"));
  }

  #write(line: EmbedderStart | EmbedderRequest): void {
    this.#process.write(new TextEncoder().encode(`${JSON.stringify(line)}\n`));
  }

  /** Waits for the answer to the last request. Answers come in the order of the requests. */
  async #answer(count: number, ms: number): Promise<TextVectors> {
    const late = () => this.#fail(`it did not answer in ${durationText(ms)}`, "TIMED_OUT");
    using _ = after(ms, late);
    this.#watch ??= setInterval(() => this.#weigh(), LOOK_MS);
    try {
      const { error, vectors } = objectOf(await this.#process.answer(this.#next));
      if (typeof error === "string") throw this.#fail(`it reports ${visible(error, 400)}`);
      const result = vectorsOf(vectors, count);
      if (result === undefined) throw this.#fail("its answer does not contain the vectors");
      return result;
    } finally {
      if (this.#process.isIdle) {
        clearInterval(this.#watch);
        this.#watch = undefined;
      }
    }
  }

  #weigh(): void {
    const { model, spareBytes = SPARE_BYTES } = this.#options;
    const most = spareBytes + MODEL_TIMES * model.bytes;
    const now = this.#process.bytes();
    if (now > most) this.#fail(`it used ${now >> 20} MB of memory, more than ${most >> 20} MB`);
  }

  /** Reads the answers. The end of the process reports why that fails. */
  async read(stdout: ReadableStream<Uint8Array>): Promise<void> {
    await this.#read(stdout).catch(() => {});
  }

  /** Reads the other output. */
  async hear(stderr: ReadableStream<Uint8Array>): Promise<void> {
    await this.#hear(stderr).catch(() => {});
  }

  /** Returns the error for a process that ended by itself. */
  ended(how: string): Error {
    return down(`its process ended with ${how}`, { said: this.#stderr });
  }

  async #read(stream: ReadableStream<Uint8Array>): Promise<void> {
    const reader = new LineReader(LONGEST_LINE);
    const take = (line: Line) => {
      if (line.kind === "line") this.#take(line.bytes);
      else this.#fail("it wrote a line that is too long");
    };
    await eachPiece(stream, (piece) => reader.push(piece, take));
  }

  async #hear(stream: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    for await (const chunk of stream) {
      this.#stderr = (this.#stderr + decoder.decode(chunk, { stream: true })).slice(-TAIL);
    }
  }

  #take(line: Uint8Array): void {
    const json = boundedJson(line);
    const waiting = isObject(json) ? this.#process.take(Number(json.id)) : undefined;
    if (waiting !== undefined) return waiting.resolve(json);
    const text = visible(new TextDecoder().decode(endsOf(line)), 200);
    this.#fail(`it wrote something that is not an answer: ${text}`);
  }

  /** Ends the process, and returns why. */
  #fail(why: string, code?: "TIMED_OUT"): PmlError {
    const error = down(why, { code });
    this.#process.end(error);
    return error;
  }
}

function programOf({ library, model, denoDir, groups }: EmbedderChildOptions): Program {
  // Deno's list of permissions cannot contain a path with a comma.
  if (library.includes(",")) throw down("the path of the PML home has a comma in it");
  const runtime = addressOf(library, RUNTIME);
  // The library imports packages by name. They are not installed; these files replace them.
  const imports = { "onnxruntime-common": runtime, "onnxruntime-web/webgpu": runtime };
  const map = `data:application/json,${encodeURIComponent(JSON.stringify({ imports }))}`;
  return {
    file: Deno.execPath(),
    args: [
      ...[...DENO_ALONE, `--v8-flags=--max-old-space-size=${HEAP_MB}`, `--import-map=${map}`],
      // A model's configuration can make the library load other files, so only the checked files
      // can be read.
      `--allow-read=${[library, ...model.files.map((name) => join(model.folder, name))]}`,
      programUrl(embedderCode),
    ],
    cwd: library,
    env: {
      DENO_DIR: denoDir,
      ...DENO_QUIET,
      PML_RUN: `${groups.mark}.`,
    },
  };
}

function addressOf(folder: string, ...name: readonly string[]): string {
  return pathToFileURL(join(folder, ...name)).href;
}

/** Reads vectors. Returns undefined unless there are `count` vectors of the same length. */
function vectorsOf(value: unknown, count: number): TextVectors | undefined {
  if (!Array.isArray(value) || value.length !== count) return undefined;
  const vectors = value.map(numbersOf);
  const size = vectors[0]?.length;
  if (vectors.some((vector) => vector === undefined || vector.length !== size)) return undefined;
  return vectors.map((vector) => {
    const norm = Math.hypot(...vector ?? []);
    // The model returned no vector for this text, but may return one for the next.
    return Number.isFinite(norm) && norm > 0 ? vector?.map((one) => one / norm) : undefined;
  });
}

function numbersOf(value: unknown): Float32Array | undefined {
  if (typeof value !== "string") return undefined;
  try {
    const bytes = Uint8Array.fromBase64(value);
    const size = bytes.length / 4;
    if (!Number.isInteger(size) || size === 0 || size > MOST_DIMENSIONS) return undefined;
    return new Float32Array(bytes.buffer);
  } catch {
    return undefined;
  }
}

function down(
  why: string,
  { code, said = "" }: {
    readonly code?: "TIMED_OUT" | undefined;
    readonly said?: string;
  } = {},
): PmlError {
  return new PmlError(code ?? "UPSTREAM_DOWN", `Cannot embed with the model: ${why}`, {
    hint: "Search uses the built-in model; `pml doctor` retries it now",
    ...(said.trim() !== "" && { detail: { stderr: errorFirst(said, TAIL) } }),
  });
}

/**
 * Runs the embedding model in a separate process, which receives texts and returns vectors. The
 * process can read only the library and the pinned files of the model. Its answers are checked
 * before they are used.
 *
 * @module
 */

import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { durationText } from "../../core/amounts.ts";
import { PmlError } from "../../core/errors.ts";
import { isObject, objectOf, visible } from "../../core/json.ts";
import { boundedJson } from "../../core/json_bounds.ts";
import { putErrorFirst } from "../../core/program_output.ts";
import { eachPiece, endsOf, type Line, LineReader } from "../../io/lines.ts";
import { callAfter } from "../../io/waiting.ts";
import { AnsweringProcess, type ProcessOwner } from "../../sandbox/answering_process.ts";
import { DENO_ALONE, DENO_QUIET, programUrl } from "../../sandbox/deno_flags.ts";
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
  /** The time limit for loading the model, in milliseconds. */
  readonly startMs: number;
  /** The time limit for an answer, in milliseconds; 60,000 by default. */
  readonly answerMs?: number;
  /** The memory in bytes that the process may use in addition to six times the model's size. */
  readonly spareBytes?: number;
  /** Records the process group, so that it ends with PML, even if PML crashes. */
  readonly groups: { readonly mark: string; add(pid: number): void; remove(pid: number): void };
}

/** A vector for each text; undefined for a text for which the model returns no vector. */
export type TextVectors = readonly (Float32Array | undefined)[];

/** The memory limit of JavaScript in the process. The model's memory is outside of it. */
const HEAP_MB = 1_024;
const SPARE_BYTES = 768 << 20;
const MODEL_FACTOR = 6;
const MEMORY_CHECK_MS = 100;
const ANSWER_MS = 60_000;
const LONGEST_LINE = 64 << 20;
const MOST_DIMENSIONS = 8_192;
/** The maximum number of characters of stderr in an error. */
const STDERR_MAX = 2_000;
const RUNTIME = "ort.wasm.bundle.min.mjs";

/** A running child. */
export class EmbedderChild implements ProcessOwner, AsyncDisposable {
  readonly #options: EmbedderChildOptions;
  readonly #process: AnsweringProcess;
  #lastId = 0;
  #memoryTimer: ReturnType<typeof setInterval> | undefined;
  #stderr = "";

  /** Starts the process, which loads the model at once. */
  constructor(options: EmbedderChildOptions) {
    const { groups, library, model } = options;
    this.#options = options;
    this.#process = new AnsweringProcess(programOf(options), groups, this);
    const start: EmbedderStart = {
      library: fileUrl(library, "transformers.web.min.js"),
      wasm: fileUrl(library, "ort-wasm-simd-threaded.wasm"),
      model: `${fileUrl(model.folder)}/`,
      dtype: model.dtype,
    };
    this.#write(start);
  }

  /** Resolves when the model is loaded. */
  async loaded(): Promise<void> {
    await this.#waitForAnswer(0, this.#options.startMs);
  }

  /** Whether the process can no longer embed texts. */
  get isOver(): boolean {
    return this.#process.isOver;
  }

  /** Returns a vector for each text. All have the same length. */
  async embed(texts: readonly string[]): Promise<TextVectors> {
    const request: EmbedderRequest = { id: ++this.#lastId, texts };
    const answer = this.#waitForAnswer(texts.length, this.#options.answerMs ?? ANSWER_MS);
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
  async #waitForAnswer(count: number, ms: number): Promise<TextVectors> {
    const onTimeout = () => this.#fail(`it did not answer in ${durationText(ms)}`, "TIMED_OUT");
    using _ = callAfter(ms, onTimeout);
    this.#memoryTimer ??= setInterval(() => this.#checkMemory(), MEMORY_CHECK_MS);
    try {
      const { error, vectors } = objectOf(await this.#process.answer(this.#lastId));
      if (typeof error === "string") throw this.#fail(`it reports ${visible(error, 400)}`);
      const result = vectorsOf(vectors, count);
      if (result === undefined) throw this.#fail("its answer does not contain the vectors");
      return result;
    } finally {
      if (this.#process.isIdle) {
        clearInterval(this.#memoryTimer);
        this.#memoryTimer = undefined;
      }
    }
  }

  #checkMemory(): void {
    const { model, spareBytes = SPARE_BYTES } = this.#options;
    const limit = spareBytes + MODEL_FACTOR * model.bytes;
    const used = this.#process.memoryBytes();
    if (used > limit) this.#fail(`it used ${used >> 20} MB of memory, more than ${limit >> 20} MB`);
  }

  /** Reads the answers. Ignores failures, because the end of the process reports the reason. */
  async readAnswers(stdout: ReadableStream<Uint8Array>): Promise<void> {
    await this.#readAnswers(stdout).catch(() => {});
  }

  /** Keeps the end of stderr for errors. */
  async readErrors(stderr: ReadableStream<Uint8Array>): Promise<void> {
    await this.#collectStderr(stderr).catch(() => {});
  }

  /** Returns the error for a process that ended by itself. */
  endError(how: string): Error {
    return embedError(`its process ended with ${how}`, { stderr: this.#stderr });
  }

  async #readAnswers(stream: ReadableStream<Uint8Array>): Promise<void> {
    const reader = new LineReader(LONGEST_LINE);
    const take = (line: Line) => {
      if (line.kind === "line") this.#receive(line.bytes);
      else this.#fail("it wrote a line that is too long");
    };
    await eachPiece(stream, (piece) => reader.push(piece, take));
  }

  async #collectStderr(stream: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    for await (const chunk of stream) {
      this.#stderr = (this.#stderr + decoder.decode(chunk, { stream: true })).slice(-STDERR_MAX);
    }
  }

  #receive(line: Uint8Array): void {
    const json = boundedJson(line);
    const request = isObject(json) ? this.#process.takeRequest(Number(json.id)) : undefined;
    if (request !== undefined) return request.resolve(json);
    const text = visible(new TextDecoder().decode(endsOf(line)), 200);
    this.#fail(`it wrote something that is not an answer: ${text}`);
  }

  /** Ends the process, and returns why. */
  #fail(why: string, code?: "TIMED_OUT"): PmlError {
    const error = embedError(why, { code });
    this.#process.end(error);
    return error;
  }
}

function programOf({ library, model, denoDir, groups }: EmbedderChildOptions): Program {
  // Deno's list of permissions cannot contain a path with a comma.
  if (library.includes(",")) throw embedError("the path of the PML home has a comma in it");
  const runtime = fileUrl(library, RUNTIME);
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

function fileUrl(folder: string, ...name: readonly string[]): string {
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
    // A vector without a direction is useless, but other texts may have good vectors.
    return Number.isFinite(norm) && norm > 0 ? vector?.map((value) => value / norm) : undefined;
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

function embedError(
  why: string,
  { code, stderr = "" }: {
    readonly code?: "TIMED_OUT" | undefined;
    readonly stderr?: string;
  } = {},
): PmlError {
  return new PmlError(code ?? "UPSTREAM_DOWN", `Cannot embed with the model: ${why}`, {
    hint: "Search uses the built-in model; `pml doctor` retries it now",
    ...(stderr.trim() !== "" && { detail: { stderr: putErrorFirst(stderr, STDERR_MAX) } }),
  });
}

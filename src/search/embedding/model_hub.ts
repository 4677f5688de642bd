/**
 * Downloads a model from a hub. Callers can ask for the sizes first. A broken download is
 * continued, and only files with the hub's size and hash are accepted.
 *
 * @module
 */

import { statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import { durationText } from "../../core/amounts.ts";
import { type ErrorCode, PmlError } from "../../core/errors.ts";
import type { Fetch } from "../../core/fetch.ts";
import { quoted } from "../../core/json.ts";
import { lockFolder } from "../../io/folder_lock.ts";
import { pause, retryWhileBusy } from "../../io/waiting.ts";
import { unlessGone } from "../../io/private_files.ts";
import { hasSize, isDownloaded, PartialFile } from "./_partial_file.ts";
import { MODEL_TEXTS, modelFile } from "./embedding_model.ts";
import type { HubFile } from "./hub_file.ts";

/** The options of a download. */
export interface ModelHubOptions {
  readonly fetch: Fetch;
  /** The address of the hub; `HUB` by default. */
  readonly from?: string | undefined;
  readonly signal: AbortSignal;
  /**
   * The pause before the second try, in milliseconds. Each further pause is three times as long.
   */
  readonly retryMs?: number;
  /** The longest time without data, in milliseconds. */
  readonly stallMs?: number;
}

/** The default model: a small encoder of English sentences. */
const DEFAULT_MODEL = {
  name: "Xenova/all-MiniLM-L6-v2",
  folder: "all-MiniLM-L6-v2",
  revision: "751bff37182d3f1213fa05d7196b954e230abad9",
};

const HUB = "https://huggingface.co";
const FILES = [...MODEL_TEXTS, modelFile("q8")];
/**
 * The maximum sizes of text files and of the model file. The default model needs less, and files of
 * these sizes cannot fill a disk.
 */
const TEXT_MAX = 32 << 20;
const MODEL_MAX = 512 << 20;
const REDIRECTS = 5;
const REDIRECTING = [301, 302, 303, 307, 308];
/** The maximum number of consecutive tries without new data. */
const TRIES_MAX = 3;
/** The maximum number of tries in total, even if each try got new data. */
const TOTAL_TRIES_MAX = 30;
const RETRY_MS = 500;
const STALL_MS = 30_000;
/** The number of bytes that must stay free on the disk. */
const SPARE_BYTES = 16 << 20;
const SHA256 = /^"?([0-9a-f]{64})"?$/;
const HINT = "Search uses the built-in model. Try again: the downloaded part is kept. " +
  "`--from URL` names a mirror, and DIR your own model";

/** An answer of the hub, after the redirects that were followed. */
interface HubAnswer {
  readonly response: Response;
  /** The size and hash from the first answer that has them. */
  readonly metadata: { readonly bytes: number | undefined; readonly sha256: string | undefined };
}

/** Downloads from one hub. */
export class ModelHub {
  readonly #options: ModelHubOptions;
  readonly #base: URL;

  /** Creates an instance. Sends no request yet. */
  constructor(options: ModelHubOptions) {
    this.#options = options;
    const base = URL.parse(options.from ?? HUB);
    if (base === null || !/^https?:$/.test(base.protocol)) {
      throw new PmlError("USAGE", `Cannot download from ${quoted(options.from ?? "")}`, {
        hint: "Write the address of a hub as https://HOST",
      });
    }
    this.#base = base;
  }

  /** The model that is downloaded, in the one revision that PML accepts. */
  readonly model: typeof DEFAULT_MODEL = DEFAULT_MODEL;

  /** The host of the hub. */
  get host(): string {
    return this.#base.host;
  }

  /** Returns whether a folder contains these files already. */
  async has(files: readonly HubFile[], folder: string): Promise<boolean> {
    for (const file of files) {
      if (!await isDownloaded(join(folder, file.name), file)) return false;
    }
    return true;
  }

  /** Returns the files to download and their sizes, without downloading them. */
  async listFiles(): Promise<readonly HubFile[]> {
    return await Promise.all(FILES.map((name) =>
      this.#retry(name, async () => {
        const { response, metadata } = await this.#request(name, { method: "HEAD" });
        await response.body?.cancel();
        const bytes = metadata.bytes ?? sizeOf(response.headers.get("content-length"));
        if (bytes === undefined) throw this.#protocolError(name, "the answer has no size");
        if (bytes > maxSizeOf(name)) {
          const why = `it has ${bytes} bytes, more than the limit of ${maxSizeOf(name)}`;
          throw this.#errorOf("RESULT_TOO_LARGE", name, { why });
        }
        return { name, bytes, sha256: metadata.sha256 };
      })
    ));
  }

  /**
   * Downloads all files into a folder, which appears only when it is complete. Calls `onBytes` with
   * the downloaded and the total number of bytes.
   */
  async install(
    files: readonly HubFile[],
    { folder, onBytes }: {
      readonly folder: string;
      readonly onBytes: (done: number, total: number) => void;
    },
  ): Promise<void> {
    const partFolder = `${folder}.part`;
    // Without the lock, two downloads would write to the same files.
    using _ = lockFolder(folder);
    await this.#downloadAll(files, { folder: partFolder, onBytes });
    await Deno.remove(folder, { recursive: true }).catch(unlessGone);
    await retryWhileBusy(() => Deno.rename(partFolder, folder));
  }

  async #downloadAll(
    files: readonly HubFile[],
    { folder, onBytes }: {
      readonly folder: string;
      readonly onBytes: (done: number, total: number) => void;
    },
  ): Promise<void> {
    const total = files.reduce((sum, { bytes }) => sum + bytes, 0);
    Deno.mkdirSync(folder, { recursive: true, mode: 0o700 });
    await this.#assertSpace(files, folder);
    let doneBefore = 0;
    for (const file of files) {
      const path = join(folder, file.name);
      Deno.mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      const report = (bytes: number) => onBytes(doneBefore + bytes, total);
      if (!hasSize(path, file.bytes)) {
        const part = new PartialFile(path, file);
        await this.#retry(file.name, () => this.#finishPart(part, report), () => part.bytes);
      }
      doneBefore += file.bytes;
      onBytes(doneBefore, total);
    }
  }

  /**
   * Runs `work` again if its failure may be temporary. If a try increased `bytesOf()`, `TRIES_MAX`
   * counts the tries from this one on.
   */
  async #retry<T>(name: string, work: () => Promise<T>, bytesOf = () => 0): Promise<T> {
    const { signal, retryMs = RETRY_MS } = this.#options;
    for (let [tries, total, doneBefore] = [1, 1, bytesOf()];; tries++, total++) {
      try {
        return await work();
      } catch (error) {
        signal.throwIfAborted();
        const done = bytesOf();
        if (done > doneBefore) [tries, doneBefore] = [1, done];
        const isTemporary = error instanceof PmlError && TEMPORARY.includes(error.code);
        if (!isTemporary || tries === TRIES_MAX || total === TOTAL_TRIES_MAX) {
          throw this.#downloadError(name, error);
        }
      }
      await pause(retryMs * 3 ** (tries - 1), signal);
    }
  }

  /** Downloads the missing part of a file, and moves the file to its path. */
  async #finishPart(part: PartialFile, report: (bytes: number) => void): Promise<void> {
    const { signal, stallMs = STALL_MS } = this.#options;
    const { name } = part.file;
    if (part.bytes >= part.file.bytes) return await part.finish();
    const stall = new AbortController();
    const onStall = () =>
      stall.abort(this.#temporaryError(name, `no data came for ${durationText(stallMs)}`));
    let timer = setTimeout(onStall, stallMs);
    try {
      const { response } = await this.#request(name, {
        headers: part.headers(),
        signal: AbortSignal.any([signal, stall.signal]),
      });
      if (response.status === 416) part.remove();
      if (!part.open(response)) {
        await response.body?.cancel();
        throw this.#temporaryError(
          name,
          `it answers ${response.status} to a request for the missing part`,
        );
      }
      for await (const piece of response.body ?? []) {
        clearTimeout(timer);
        timer = setTimeout(onStall, stallMs);
        if (part.bytes + piece.length > part.file.bytes) {
          part.remove();
          throw this.#protocolError(name, `more than the announced ${part.file.bytes} bytes came`);
        }
        part.write(piece);
        report(part.bytes);
      }
    } catch (error) {
      throw diskFullError(error, dirname(part.path)) ?? error;
    } finally {
      clearTimeout(timer);
      part.close();
    }
    if (part.bytes < part.file.bytes) {
      throw this.#temporaryError(name, "its answer ended too early");
    }
    await part.finish();
  }

  /** Follows redirects, because hubs keep large files on other hosts. */
  async #request(
    name: string,
    { method = "GET", headers = {}, signal = this.#options.signal }: {
      readonly method?: "GET" | "HEAD";
      readonly headers?: Readonly<Record<string, string>>;
      readonly signal?: AbortSignal;
    },
  ): Promise<HubAnswer> {
    const { origin, pathname, host } = this.#base;
    const { name: model, revision } = DEFAULT_MODEL;
    let url = `${origin}${pathname.replace(/\/+$/, "")}/${model}/resolve/${revision}/${name}`;
    let metadata: HubAnswer["metadata"] = { bytes: undefined, sha256: undefined };
    for (let hops = 0;; hops++) {
      const named = new Set([host]);
      const response = await this.#options.fetch(url, { method, headers, signal, named });
      const { status } = response;
      metadata = {
        bytes: metadata.bytes ?? sizeOf(response.headers.get("x-linked-size")),
        sha256: metadata.sha256 ?? SHA256.exec(response.headers.get("x-linked-etag") ?? "")?.[1],
      };
      if ([200, 206, 416].includes(status)) return { response, metadata };
      await response.body?.cancel();
      if (status === 429 || status >= 500) throw this.#temporaryError(name, `it answers ${status}`);
      if (!REDIRECTING.includes(status)) throw this.#protocolError(name, `it answers ${status}`);
      if (method === "HEAD" && metadata.bytes !== undefined) return { response, metadata };
      const target = URL.parse(response.headers.get("location") ?? "", url);
      const isSafe = target?.protocol === "https:" || target?.origin === origin;
      if (target === null || !isSafe) {
        throw this.#protocolError(name, "it redirects to an address without TLS");
      }
      if (hops === REDIRECTS) {
        throw this.#protocolError(name, `it redirects more than ${REDIRECTS} times`);
      }
      url = target.href;
    }
  }

  /** Returns the free bytes on the disk of a folder. */
  async freeBytes(folder: string): Promise<number> {
    const { bavail, bsize } = await statfs(folder);
    return Number(bavail) * Number(bsize);
  }

  async #assertSpace(files: readonly HubFile[], folder: string): Promise<void> {
    const needed = files.reduce((sum, { bytes }) => sum + bytes, SPARE_BYTES);
    const freeBytes = await this.freeBytes(folder);
    if (freeBytes < needed) {
      throw storageError(folder, `${needed >> 20} MB are needed, ${freeBytes >> 20} MB are free`);
    }
  }

  /** Returns the error for a wrong answer. The request is not tried again. */
  #protocolError(name: string, why: string): PmlError {
    return this.#errorOf("UPSTREAM_PROTOCOL", name, { why });
  }

  /** Returns the error for a failure that may be temporary. */
  #temporaryError(name: string, why: string): PmlError {
    return this.#errorOf("UPSTREAM_DOWN", name, { why });
  }

  /**
   * Converts an error of the network to an error of this download. Returns other errors unchanged.
   */
  #downloadError(name: string, error: unknown): unknown {
    if (!(error instanceof PmlError) || !/^Cannot (?:reach|read)/.test(error.message)) return error;
    const { code, message } = error;
    return this.#errorOf(code, name, { why: message.replace(/^.*?: /s, ""), cause: error });
  }

  #errorOf(
    code: ErrorCode,
    name: string,
    { why, cause }: { readonly why: string; readonly cause?: unknown },
  ): PmlError {
    const message = `Cannot download ${quoted(name)} from ${quoted(this.host)}: ${why}`;
    return new PmlError(code, message, { hint: HINT, cause });
  }
}

/** The codes of failures that may be temporary. */
const TEMPORARY = ["UPSTREAM_DOWN", "TIMED_OUT"];

function maxSizeOf(name: string): number {
  return MODEL_TEXTS.includes(name) ? TEXT_MAX : MODEL_MAX;
}

function sizeOf(header: string | null): number | undefined {
  return header !== null && /^\d{1,15}$/.test(header) ? Number(header) : undefined;
}

function diskFullError(error: unknown, folder: string): PmlError | undefined {
  const { code } = Object(error);
  return code === "ENOSPC" || code === "EDQUOT" ? storageError(folder, "none is left") : undefined;
}

function storageError(folder: string, why: string): PmlError {
  return new PmlError("OVERLOADED", `Cannot store a model in ${quoted(folder, 400)}: ${why}`, {
    hint: "Free disk space there; the downloaded part is kept",
  });
}

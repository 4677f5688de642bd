/**
 * Downloads a model from a hub: returns the size first, continues a broken download, and accepts
 * only files with the hub's size and hash.
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
import { pause, repeated } from "../../io/waiting.ts";
import { unlessGone } from "../../io/private_files.ts";
import { isDownloaded, isWhole, PartialFile } from "./_part.ts";
import { MODEL_TEXTS, onnxOf } from "./embedding_model.ts";
import type { HubFile } from "./hub_file.ts";

/** The options of a download. */
export interface ModelHubOptions {
  readonly fetch: Fetch;
  /** The address of the hub, if it is not the default one. */
  readonly from?: string | undefined;
  readonly signal: AbortSignal;
  /** The first pause before it tries again, in milliseconds. */
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
const FILES = [...MODEL_TEXTS, onnxOf("q8")];
/** Larger than the model has ever been, and too small to fill a disk. */
const LARGEST_TEXT = 32 << 20;
const LARGEST = 512 << 20;
const REDIRECTS = 5;
const REDIRECTING = [301, 302, 303, 307, 308];
/** The maximum number of failures in a row in which no data came. */
const TRIES = 3;
/** The maximum number of failures in total, even if some data came each time. */
const MOST_TRIES = 30;
const RETRY_MS = 500;
const STALL_MS = 30_000;
/** Bytes that stay free on the disk for other files. */
const SPARE = 16 << 20;
const SHA256 = /^"?([0-9a-f]{64})"?$/;
const OTHERWISE = "Search uses the built-in model. Try again: the downloaded part is kept. " +
  "`--from URL` names a mirror, and DIR your own model";

/** An answer after all redirects. */
interface HubAnswer {
  readonly response: Response;
  /** The size and hash from the first answer that has them. */
  readonly linked: { readonly bytes: number | undefined; readonly sha256: string | undefined };
}

/** Downloads from one hub. */
export class ModelHub {
  readonly #options: ModelHubOptions;
  readonly #base: URL;

  /** Connects to nothing yet. */
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
  async look(): Promise<readonly HubFile[]> {
    return await Promise.all(FILES.map((name) =>
      this.#again(name, async () => {
        const { response, linked } = await this.#reach(name, { method: "HEAD" });
        await response.body?.cancel();
        const bytes = linked.bytes ?? sizeOf(response.headers.get("content-length"));
        if (bytes === undefined) throw this.#bad(name, "the answer has no size");
        if (bytes > mostOf(name)) {
          const why = `it has ${bytes} bytes, more than the limit of ${mostOf(name)}`;
          throw this.#error("RESULT_TOO_LARGE", name, { why });
        }
        return { name, bytes, sha256: linked.sha256 };
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
    const fresh = `${folder}.part`;
    // Two downloads would write to the same parts.
    using _ = lockFolder(folder);
    await this.#get(files, { folder: fresh, onBytes });
    await Deno.remove(folder, { recursive: true }).catch(unlessGone);
    await repeated(() => Deno.rename(fresh, folder));
  }

  async #get(
    files: readonly HubFile[],
    { folder, onBytes }: {
      readonly folder: string;
      readonly onBytes: (done: number, total: number) => void;
    },
  ): Promise<void> {
    const total = files.reduce((sum, { bytes }) => sum + bytes, 0);
    Deno.mkdirSync(folder, { recursive: true, mode: 0o700 });
    await this.#mustFit(files, folder);
    let before = 0;
    for (const file of files) {
      const path = join(folder, file.name);
      Deno.mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      const tell = (bytes: number) => onBytes(before + bytes, total);
      if (!isWhole(path, file.bytes)) {
        const part = new PartialFile(path, file);
        await this.#again(file.name, () => this.#rest(part, tell), () => part.bytes);
      }
      before += file.bytes;
      onBytes(before, total);
    }
  }

  /**
   * Runs `work` again if its failure may be temporary. It is tried longer if more data comes each
   * time.
   */
  async #again<T>(name: string, work: () => Promise<T>, come = () => 0): Promise<T> {
    const { signal, retryMs = RETRY_MS } = this.#options;
    for (let [tries, all, had] = [1, 1, come()];; tries++, all++) {
      try {
        return await work();
      } catch (error) {
        signal.throwIfAborted();
        const now = come();
        if (now > had) [tries, had] = [1, now];
        const isLost = error instanceof PmlError && LOST.includes(error.code);
        if (!isLost || tries === TRIES || all === MOST_TRIES) {
          throw this.#downloadError(name, error);
        }
      }
      await pause(retryMs * 3 ** (tries - 1), signal);
    }
  }

  /** Downloads the missing part of a file, and moves the file to its path. */
  async #rest(part: PartialFile, tell: (bytes: number) => void): Promise<void> {
    const { signal, stallMs = STALL_MS } = this.#options;
    const { name } = part.file;
    if (part.bytes >= part.file.bytes) return await part.finish();
    const stall = new AbortController();
    const late = () => stall.abort(this.#lost(name, `no data came for ${durationText(stallMs)}`));
    let timer = setTimeout(late, stallMs);
    try {
      const both = AbortSignal.any([signal, stall.signal]);
      const { response } = await this.#reach(name, { headers: part.headers(), signal: both });
      if (response.status === 416) part.remove();
      if (!part.begin(response)) {
        await response.body?.cancel();
        throw this.#lost(name, `it answers ${response.status} for a part`);
      }
      for await (const piece of response.body ?? []) {
        clearTimeout(timer);
        timer = setTimeout(late, stallMs);
        if (part.bytes + piece.length > part.file.bytes) {
          part.remove();
          throw this.#bad(name, `more than the announced ${part.file.bytes} bytes came`);
        }
        part.write(piece);
        tell(part.bytes);
      }
    } catch (error) {
      throw noRoom(error, dirname(part.path)) ?? error;
    } finally {
      clearTimeout(timer);
      part.close();
    }
    if (part.bytes < part.file.bytes) throw this.#lost(name, "its answer broke off");
    await part.finish();
  }

  /** Follows redirects, because hubs keep large files on other hosts. */
  async #reach(
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
    let linked: HubAnswer["linked"] = { bytes: undefined, sha256: undefined };
    for (let hops = 0;; hops++) {
      const named = new Set([host]);
      const response = await this.#options.fetch(url, { method, headers, signal, named });
      const { status } = response;
      linked = {
        bytes: linked.bytes ?? sizeOf(response.headers.get("x-linked-size")),
        sha256: linked.sha256 ?? SHA256.exec(response.headers.get("x-linked-etag") ?? "")?.[1],
      };
      if ([200, 206, 416].includes(status)) return { response, linked };
      await response.body?.cancel();
      if (status === 429 || status >= 500) throw this.#lost(name, `it answers ${status}`);
      if (!REDIRECTING.includes(status)) throw this.#bad(name, `it answers ${status}`);
      if (method === "HEAD" && linked.bytes !== undefined) return { response, linked };
      const to = URL.parse(response.headers.get("location") ?? "", url);
      const isSafe = to?.protocol === "https:" || to?.origin === origin;
      if (to === null || !isSafe) throw this.#bad(name, "it redirects to an address without TLS");
      if (hops === REDIRECTS) throw this.#bad(name, `it redirects more than ${REDIRECTS} times`);
      url = to.href;
    }
  }

  /** Returns the free bytes on the disk of a folder. */
  async freeBytes(folder: string): Promise<number> {
    const { bavail, bsize } = await statfs(folder);
    return Number(bavail) * Number(bsize);
  }

  async #mustFit(files: readonly HubFile[], folder: string): Promise<void> {
    const needed = files.reduce((sum, { bytes }) => sum + bytes, SPARE);
    const freeBytes = await this.freeBytes(folder);
    if (freeBytes < needed) {
      throw full(folder, `${needed >> 20} MB are needed, ${freeBytes >> 20} MB are free`);
    }
  }

  /** Returns the error for a wrong answer, which another request would not change. */
  #bad(name: string, why: string): PmlError {
    return this.#error("UPSTREAM_PROTOCOL", name, { why });
  }

  /** Returns the error for a failure that may be temporary. */
  #lost(name: string, why: string): PmlError {
    return this.#error("UPSTREAM_DOWN", name, { why });
  }

  /** Returns a failure of the network as an error of this download. */
  #downloadError(name: string, error: unknown): unknown {
    if (!(error instanceof PmlError) || !/^Cannot (?:reach|read)/.test(error.message)) return error;
    const { code, message } = error;
    return this.#error(code, name, { why: message.replace(/^.*?: /s, ""), cause: error });
  }

  #error(
    code: ErrorCode,
    name: string,
    { why, cause }: { readonly why: string; readonly cause?: unknown },
  ): PmlError {
    const message = `Cannot download ${quoted(name)} from ${quoted(this.host)}: ${why}`;
    return new PmlError(code, message, { hint: OTHERWISE, cause });
  }
}

/** The codes of failures of the network, not of the hub. */
const LOST = ["UPSTREAM_DOWN", "TIMED_OUT"];

function mostOf(name: string): number {
  return MODEL_TEXTS.includes(name) ? LARGEST_TEXT : LARGEST;
}

function sizeOf(header: string | null): number | undefined {
  return header !== null && /^\d{1,15}$/.test(header) ? Number(header) : undefined;
}

function noRoom(error: unknown, folder: string): PmlError | undefined {
  const { code } = Object(error);
  return code === "ENOSPC" || code === "EDQUOT" ? full(folder, "none is left") : undefined;
}

function full(folder: string, why: string): PmlError {
  return new PmlError("OVERLOADED", `Cannot store a model in ${quoted(folder, 400)}: ${why}`, {
    hint: "Free disk space there; the downloaded part is kept",
  });
}

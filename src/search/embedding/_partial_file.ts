/**
 * Downloads one file, and continues an earlier download of it.
 *
 * @module
 */

import { PmlError } from "../../core/errors.ts";
import { quoted } from "../../core/json.ts";
import { removeIfPossible, writeFileWhole } from "../../io/cache_files.ts";
import { infoAt } from "../../io/path_info.ts";
import { openRegular, textIfAny } from "../../io/regular_file.ts";
import { fileHash } from "../../io/tree.ts";
import { retryWhileBusy } from "../../io/waiting.ts";
import type { HubFile } from "./hub_file.ts";

/** A file and its downloaded part, which is stored on disk. */
export class PartialFile {
  /** The path of the complete file. */
  readonly path: string;
  /** The file as the hub describes it. */
  readonly file: HubFile;
  readonly #partPath: string;
  readonly #etagPath: string;
  #file: Deno.FsFile | undefined;
  #bytes: number;

  /** Finds the part that an earlier download left. */
  constructor(path: string, file: HubFile) {
    this.path = path;
    this.file = file;
    this.#partPath = `${path}.part`;
    this.#etagPath = `${path}.part.etag`;
    this.#bytes = sizeOf(this.#partPath) ?? 0;
  }

  /** The number of bytes that are downloaded. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Returns the headers that request the missing bytes, only if the content is still the same. */
  headers(): Readonly<Record<string, string>> {
    // Without an ETag, the whole file is requested.
    const etag = this.#bytes === 0 ? undefined : textIfAny(this.#etagPath);
    if (etag === undefined) return {};
    return { "range": `bytes=${this.#bytes}-`, "if-range": etag };
  }

  /**
   * Opens the part for the content of a response, which continues the part or replaces it. Returns
   * false if the response does neither.
   */
  open({ status, headers }: Response): boolean {
    const [, from, total] = /^bytes (\d+)-\d+\/(\d+)$/.exec(headers.get("content-range") ?? "") ??
      [];
    const isContinued = status === 206 && Number(from) === this.#bytes &&
      Number(total) === this.file.bytes;
    if (!isContinued) this.remove();
    if (!isContinued && status !== 200) return false;
    const etag = headers.get("etag") ?? "";
    // A weak ETag marks two contents as equivalent, not as identical.
    if (/^"[\x21\x23-\x7e]{1,200}"$/.test(etag)) writeFileWhole(this.#etagPath, etag);
    this.#file = openRegular(this.#partPath, { append: true, create: true, mode: 0o600 });
    return true;
  }

  /** Adds a piece of the content. */
  write(piece: Uint8Array): void {
    for (let offset = 0; offset < piece.length;) {
      const written = this.#file?.writeSync(piece.subarray(offset)) ?? 0;
      offset += written;
      this.#bytes += written;
    }
  }

  /** Closes the part and keeps its content. */
  close(): void {
    this.#file?.close();
    this.#file = undefined;
  }

  /** Removes the downloaded part. */
  remove(): void {
    this.close();
    for (const path of [this.#partPath, this.#etagPath]) removeIfPossible(path);
    this.#bytes = 0;
  }

  /** Compares the complete part with the hub's size and hash, and moves it to the file's path. */
  async finish(): Promise<void> {
    const { name, sha256 } = this.file;
    if (!await isDownloaded(this.#partPath, this.file)) {
      this.remove();
      const message = `Cannot use ${quoted(name)}: its size or hash differs from the hub's`;
      throw new PmlError("INTEGRITY_MISMATCH", message, {
        hint: "The file was removed. Download it again, or report it to the hub",
        detail: { wanted: sha256 },
      });
    }
    await retryWhileBusy(() => Deno.rename(this.#partPath, this.path));
    removeIfPossible(this.#etagPath);
  }
}

/** Returns whether a file exists with all of its bytes. */
export function hasSize(path: string, bytes: number): boolean {
  return sizeOf(path) === bytes;
}

/** Returns whether a file exists and has the hub's size and hash. */
export async function isDownloaded(path: string, { bytes, sha256 }: HubFile): Promise<boolean> {
  return hasSize(path, bytes) && (sha256 === undefined || await fileHash(path) === sha256);
}

function sizeOf(path: string): number | undefined {
  const info = infoAt(path);
  return info?.isFile ? info.size : undefined;
}

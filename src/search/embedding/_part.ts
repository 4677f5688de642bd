/**
 * The download of one file.
 *
 * @module
 */

import { PmlError } from "../../core/errors.ts";
import { quoted } from "../../core/json.ts";
import { drop, keepFile } from "../../io/kept.ts";
import { infoAt } from "../../io/place.ts";
import { openRegular, textIfAny } from "../../io/regular_file.ts";
import { fileHash } from "../../io/tree.ts";
import { repeated } from "../../io/waiting.ts";
import type { HubFile } from "./hub_file.ts";

/** The downloaded part of a file. It is kept on disk. */
export class PartialFile {
  /** The path of the complete file. */
  readonly path: string;
  readonly file: HubFile;
  readonly #part: string;
  readonly #name: string;
  #open: Deno.FsFile | undefined;
  #bytes: number;

  /** Finds the part that an earlier download left. */
  constructor(path: string, file: HubFile) {
    this.path = path;
    this.file = file;
    this.#part = `${path}.part`;
    this.#name = `${path}.part.etag`;
    this.#bytes = sizeOf(this.#part) ?? 0;
  }

  /** The number of bytes that are downloaded. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Returns the headers that request the missing bytes, only if the content is still the same. */
  headers(): Readonly<Record<string, string>> {
    // Without it, the whole file is requested.
    const etag = this.#bytes === 0 ? undefined : textIfAny(this.#name);
    if (etag === undefined) return {};
    return { "range": `bytes=${this.#bytes}-`, "if-range": etag };
  }

  /**
   * Handles an answer: it continues the part or starts again. Returns false if the answer is
   * neither.
   */
  begin({ status, headers }: Response): boolean {
    const [, from, total] = /^bytes (\d+)-\d+\/(\d+)$/.exec(headers.get("content-range") ?? "") ??
      [];
    const goesOn = status === 206 && Number(from) === this.#bytes &&
      Number(total) === this.file.bytes;
    if (!goesOn) this.remove();
    if (!goesOn && status !== 200) return false;
    const etag = headers.get("etag") ?? "";
    // A weak ETag marks two contents as equivalent, not as identical.
    if (/^"[\x21\x23-\x7e]{1,200}"$/.test(etag)) keepFile(this.#name, etag);
    this.#open = openRegular(this.#part, { append: true, create: true, mode: 0o600 });
    return true;
  }

  /** Adds a piece of the content. */
  write(piece: Uint8Array): void {
    for (let at = 0; at < piece.length;) {
      const written = this.#open?.writeSync(piece.subarray(at)) ?? 0;
      at += written;
      this.#bytes += written;
    }
  }

  /** Closes the file and keeps its content. */
  close(): void {
    this.#open?.close();
    this.#open = undefined;
  }

  /** Removes the downloaded part. */
  remove(): void {
    this.close();
    for (const path of [this.#part, this.#name]) drop(path);
    this.#bytes = 0;
  }

  /** Compares the whole file with the hub's hash, and moves it to its path. */
  async finish(): Promise<void> {
    const { name, sha256 } = this.file;
    if (!await isDownloaded(this.#part, this.file)) {
      this.remove();
      const message = `Cannot use ${quoted(name)}: its size or hash differs from the hub's`;
      throw new PmlError("INTEGRITY_MISMATCH", message, {
        hint: "The file was removed. Run it again, or report it to the hub",
        detail: { wanted: sha256 },
      });
    }
    await repeated(() => Deno.rename(this.#part, this.path));
    drop(this.#name);
  }
}

/** Returns whether a file exists with all of its bytes. */
export function isWhole(path: string, bytes: number): boolean {
  return sizeOf(path) === bytes;
}

/** Returns whether a file exists and has the hub's size and hash. */
export async function isDownloaded(path: string, { bytes, sha256 }: HubFile): Promise<boolean> {
  return isWhole(path, bytes) && (sha256 === undefined || await fileHash(path) === sha256);
}

function sizeOf(path: string): number | undefined {
  const info = infoAt(path);
  return info?.isFile ? info.size : undefined;
}

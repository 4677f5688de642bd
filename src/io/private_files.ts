/**
 * Writes files that approvals and security depend on: completely or not at all, synced, one writer
 * at a time, never through a link.
 *
 * @module
 */

import { Buffer } from "node:buffer";
import { basename, dirname, join } from "node:path";
import { messageOf, PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import { isGone } from "./path_info.ts";
import { fileError, openRegular, readRegular } from "./regular_file.ts";
import { isBusy, retryWhileBusy } from "./waiting.ts";

const TEMPORARY_SUFFIX = ".pml-tmp";
/** The hint for a file that could not be written. */
const UNCHANGED = "The file is unchanged. Check its content, then try again";

/** Returns whether the mode of a file allows access by other users. Windows has no such modes. */
export function isSharedMode({ mode }: Pick<Deno.FileInfo, "mode">, os = Deno.build.os): boolean {
  return os !== "windows" && ((mode ?? 0) & 0o077) !== 0;
}

/** Makes a folder of the PML home private, and creates it if it is missing. */
export function privateFolder(folder: string): void {
  try {
    Deno.mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new PmlError("CONFIG_INVALID", `Cannot use the PML home: ${Object(error).message}`, {
      hint: "Make it writable, or set PML_HOME to another folder",
      cause: error,
    });
  }
  const info = Deno.lstatSync(folder);
  if (!info.isDirectory) throw fileError(folder, "it is not a folder");
  if (isSharedMode(info)) Deno.chmodSync(folder, 0o700);
}

/** Runs `work` while this process has an exclusive lock on `sideFile`. */
export async function withLock<T>(sideFile: string, work: () => Promise<T>): Promise<T> {
  privateFolder(dirname(sideFile));
  using file = openRegular(sideFile, { read: true, write: true, create: true, mode: 0o600 });
  // Closing the file releases the lock, and so does the end of the process.
  await file.lock(true);
  return await work();
}

/** The content and the mode of a regular file. */
export interface PlainFile {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly mode: number;
}

/** Reads a regular file; undefined if there is none. Throws if it is a link. */
export function readPlain(path: string, most?: number): PlainFile | undefined {
  try {
    const { bytes, info } = readRegular(path, { most });
    return { bytes, mode: (info.mode ?? 0o600) & 0o777 };
  } catch (error) {
    return unlessGone(error);
  }
}

/** Returns whether a path is that of a regular file, not of a link. */
export function isRegularFile(path: string): boolean {
  try {
    return Deno.lstatSync(path).isFile;
  } catch (error) {
    return unlessGone(error) ?? false;
  }
}

/** Reads the text of a regular file; undefined if there is none. Throws if it is a link. */
export function readPlainText(path: string): string | undefined {
  const plain = readPlain(path);
  return plain && new TextDecoder().decode(plain.bytes);
}

/** Writes warnings for the user. `Log` implements it. */
export interface WarningLog {
  /** Writes a warning. */
  warn(message: string): void;
}

/** Drops warnings. */
export const NO_WARNINGS: WarningLog = { warn() {} };

/**
 * Reads the JSON of a file that `writePrivate` wrote; warns and returns undefined if it cannot be
 * read or `parse` throws.
 */
export function readPrivate<T>(
  path: string,
  parse: (json: unknown) => T,
  log: WarningLog,
): T | undefined {
  return readPrivateText(path, (text) => parse(JSON.parse(text)), log);
}

/** Reads the text of a file that `writePrivate` wrote, with warnings as for `readPrivate()`. */
export function readPrivateText<T>(
  path: string,
  parse: (text: string) => T,
  log: WarningLog,
): T | undefined {
  try {
    const text = readPlainText(path);
    return text === undefined ? undefined : parse(text);
  } catch (error) {
    const why = messageOf(error);
    // An error about the kind of file already contains its path.
    log.warn(why.startsWith("Cannot use ") ? why : `Cannot use ${quoted(path, 400)}: ${why}`);
    return undefined;
  }
}

/** Writes a value as JSON, for this user only. */
export async function writePrivate(path: string, value: unknown): Promise<void> {
  privateFolder(dirname(path));
  const bytes = new TextEncoder().encode(`${JSON.stringify(value, null, 2)}\n`);
  await writeWhole(path, { bytes, mode: 0o600 });
}

/** The content to write, and the content that it replaces. */
export interface Whole extends PlainFile {
  /**
   * The content that the file must have now, or "nothing" if there must be no file. Without it,
   * nothing is checked.
   */
  readonly expected?: Uint8Array | "nothing";
}

/** Writes a complete file: writes a temporary file, syncs it, and renames it to the path. */
export async function writeWhole(path: string, { expected, bytes, mode }: Whole): Promise<void> {
  const temporary = `${path}.${crypto.randomUUID()}${TEMPORARY_SUFFIX}`;
  try {
    await writeSynced(temporary, { bytes, mode }).catch((error) => {
      throw fileError(
        path,
        `it cannot be written: ${error.message}`,
        `The file is unchanged. ${
          error.code === "ENOSPC" ? "Free disk space" : "Make its folder writable"
        }`,
      );
    });
    // guard: written-over
    if (expected instanceof Uint8Array) assertUnchanged(path, expected);
    // A rename would replace a file that was created meanwhile. A hard link fails instead.
    await retryWhileBusy(() => (expected === "nothing" ? Deno.link : Deno.rename)(temporary, path))
      .catch((error) => {
        if (!isBusy(error)) throw error;
        const hint = "The file is unchanged. Close it in other programs, and try again";
        throw fileError(path, "another program has it open", hint);
      });
  } finally {
    await retryWhileBusy(() => Deno.remove(temporary)).catch(unlessGone);
  }
  await syncName(path);
}

/** Returns the error for a file that could not be changed. */
export function unchangedFileError(path: string, why: unknown): PmlError {
  if (why instanceof PmlError) return why;
  return fileError(path, messageOf(why), UNCHANGED);
}

/** Returns the error for a file whose other content an edit would change. */
export function uneditableError(path: string): PmlError {
  return unchangedFileError(path, "it cannot be edited without another change");
}

/** Syncs the folder of a path, so that a rename or a removal is on the disk. */
export async function syncName(path: string): Promise<void> {
  if (Deno.build.os === "windows") return;
  using folder = await Deno.open(dirname(path));
  await folder.sync();
}

/** Removes temporary files of killed writers of `path`. The caller must hold the lock. */
export async function removeLeftovers(path: string): Promise<void> {
  for await (const { name } of Deno.readDir(dirname(path))) {
    if (name.startsWith(`${basename(path)}.`) && name.endsWith(TEMPORARY_SUFFIX)) {
      await Deno.remove(join(dirname(path), name)).catch(unlessGone);
    }
  }
}

/** Returns undefined if an error means that a file does not exist. Throws any other error. */
export function unlessGone(error: unknown): undefined {
  if (!isGone(error)) throw error;
}

/** Returns the sorted names in a folder; an empty list if there is no such folder. */
export async function namesIn(folder: string): Promise<readonly string[]> {
  const all = await Array.fromAsync(Deno.readDir(folder)).catch(unlessGone) ?? [];
  return all.map(({ name }) => name).sort();
}

async function writeSynced(path: string, { bytes, mode }: PlainFile): Promise<void> {
  using file = await Deno.open(path, { write: true, createNew: true, mode: 0o600 });
  for (let offset = 0; offset < bytes.length;) offset += await file.write(bytes.subarray(offset));
  if (Deno.build.os !== "windows") await Deno.chmod(path, mode);
  await file.sync();
}

function assertUnchanged(path: string, bytes: Uint8Array): void {
  const current = readPlain(path);
  if (!current || !Buffer.from(current.bytes).equals(bytes)) {
    throw fileError(path, "it was changed meanwhile", UNCHANGED);
  }
}

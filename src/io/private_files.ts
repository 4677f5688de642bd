/**
 * Writes what a person's word or security depends on: whole or not at all, synced, one writer at a
 * time, never through a link.
 *
 * @module
 */

import { Buffer } from "node:buffer";
import { basename, dirname, join } from "node:path";
import { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import { openRegular, readRegular, refused } from "./regular_file.ts";

const WRITING = ".pml-tmp";
/** What to do about a file that could not be written. */
export const UNCHANGED = "It is as it was; look at it, then try again";

/** Opens a folder of the PML home for this person alone, making it where it is missing. */
export function privateFolder(folder: string): void {
  try {
    Deno.mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new PmlError("CONFIG_INVALID", `Cannot use the PML home: ${Object(error).message}`, {
      hint: "Make it a folder that you can write, or set PML_HOME to one",
      cause: error,
    });
  }
  const { isDirectory, mode } = Deno.lstatSync(folder);
  if (!isDirectory) throw refused(folder, "it is not a folder");
  if (Deno.build.os !== "windows" && ((mode ?? 0) & 0o077) !== 0) Deno.chmodSync(folder, 0o700);
}

/** Runs `work` while no other process, and nothing else in this one, holds the same side file. */
export async function locked<T>(sideFile: string, work: () => Promise<T>): Promise<T> {
  privateFolder(dirname(sideFile));
  using file = openRegular(sideFile, { read: true, write: true, create: true, mode: 0o600 });
  // Closing the file gives the lock back, and so does the end of the process.
  await file.lock(true);
  return await work();
}

/** What a plain file holds, and its mode. */
export interface Plain {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly mode: number;
}

/** Reads a plain file that is no link, or gives nothing where there is none. */
export function readPlain(path: string, most?: number): Plain | undefined {
  try {
    const { bytes, info } = readRegular(path, { most });
    return { bytes, mode: (info.mode ?? 0o600) & 0o777 };
  } catch (error) {
    return unlessGone(error);
  }
}

/** How a private file is read again. */
export interface Reading<T> {
  /** Makes of the JSON what is used of it; throws where it is something else. */
  readonly parse: (json: unknown) => T;
  readonly warn: (message: string) => void;
}

/** Reads what `writePrivate` wrote; what cannot be read is told, and is nothing. */
export function readPrivate<T>(path: string, reading: Reading<T>): T | undefined {
  try {
    const plain = readPlain(path);
    return plain && reading.parse(JSON.parse(new TextDecoder().decode(plain.bytes)));
  } catch (error) {
    reading.warn(`Cannot read ${quoted(path, 400)}, so it approves nothing: ${error}`);
    return undefined;
  }
}

/** Writes a value as JSON, for this person alone. */
export async function writePrivate(path: string, value: unknown): Promise<void> {
  privateFolder(dirname(path));
  const bytes = new TextEncoder().encode(`${JSON.stringify(value, null, 2)}\n`);
  await writeWhole(path, { bytes, mode: 0o600 });
}

/** What is written, and over what. */
export interface Whole extends Plain {
  /** The bytes that must still be there, or nothing at all; whatever is there where left out. */
  readonly over?: Uint8Array | "nothing";
}

/** Puts a whole file in place: a new file beside it, synced, renamed over it. */
export async function writeWhole(path: string, { over, bytes, mode }: Whole): Promise<void> {
  const temporary = `${path}.${crypto.randomUUID()}${WRITING}`;
  try {
    await writeSynced(temporary, { bytes, mode }).catch((error) => {
      throw refused(
        path,
        `it cannot be written: ${error.message}`,
        "It is as it was; free the disk",
      );
    });
    if (over instanceof Uint8Array) mustHold(path, over);
    // A rename would take the place of a file that appeared meanwhile; a link does not.
    await (over === "nothing" ? Deno.link : Deno.rename)(temporary, path);
  } finally {
    await Deno.remove(temporary).catch(unlessGone);
  }
  await syncName(path);
}

/** Waits until the disk has what a name leads to, or that it leads nowhere any more. */
export async function syncName(path: string): Promise<void> {
  if (Deno.build.os === "windows") return;
  using folder = await Deno.open(dirname(path));
  await folder.sync();
}

/** Removes what a killed writer of `path` left beside it. Only for who holds its lock. */
export async function removeLeftovers(path: string): Promise<void> {
  for await (const { name } of Deno.readDir(dirname(path))) {
    if (name.startsWith(`${basename(path)}.`) && name.endsWith(WRITING)) {
      await Deno.remove(join(dirname(path), name)).catch(unlessGone);
    }
  }
}

/** Lets pass that a file is not there. */
export function unlessGone(error: unknown): undefined {
  if (!(error instanceof Deno.errors.NotFound)) throw error;
}

async function writeSynced(path: string, { bytes, mode }: Plain): Promise<void> {
  using file = await Deno.open(path, { write: true, createNew: true, mode: 0o600 });
  for (let at = 0; at < bytes.length;) at += await file.write(bytes.subarray(at));
  if (Deno.build.os !== "windows") await Deno.chmod(path, mode);
  await file.sync();
}

function mustHold(path: string, bytes: Uint8Array): void {
  const now = readPlain(path);
  if (!now || !Buffer.from(now.bytes).equals(bytes)) {
    throw refused(path, "it was changed meanwhile", UNCHANGED);
  }
}

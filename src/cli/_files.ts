/**
 * Writes files of the person: whole or not at all, and never over what nobody has looked at.
 *
 * @module
 */

import { Buffer } from "node:buffer";
import { randomBytes } from "node:crypto";
import { basename, dirname, isAbsolute, join, relative } from "node:path";
import { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";

const LONGEST = 10_000_000;

/** A regular file as it is now. */
export interface Found {
  /** Its real path. */
  readonly path: string;
  readonly bytes: Uint8Array;
  readonly mode: number;
}

/** Reads a file of a folder through its real path, which must lie in the folder too. */
export async function readInside(folder: string, name: string): Promise<Found | undefined> {
  const named = join(folder, name);
  if (!await isThere(named)) return undefined;
  const path = await Deno.realPath(named).catch(() => undefined);
  const way = path === undefined ? ".." : relative(folder, path);
  if (path === undefined || way.split(/[/\\]/)[0] === ".." || isAbsolute(way)) {
    throw refused(named, "it is a link that leads out of the workspace");
  }
  // A pipe would be waited for without end, so it is looked at before it is opened.
  const { isFile, size, mode } = await Deno.lstat(path);
  if (!isFile) throw refused(named, "it is not a regular file");
  if (size > LONGEST) throw refused(named, `it has ${size} bytes`);
  return { path, bytes: await Deno.readFile(path), mode: (mode ?? 0o644) & 0o777 };
}

/** Makes a file that must not be there yet. */
export async function createFile(
  path: string,
  { text, mode }: { readonly text: string; readonly mode: number },
): Promise<void> {
  await placed(path, {
    bytes: new TextEncoder().encode(text),
    mode,
    // A rename would take the place of a file that appeared meanwhile; a link does not.
    put: (temporary) => Deno.link(temporary, path),
  });
}

/** Keeps a copy of a file beside it, readable for this person alone, and gives its path. */
export async function backUp(found: Found): Promise<string> {
  for (let number = 0;; number++) {
    const path = `${found.path}.backup${number === 0 ? "" : `.${number}`}`;
    if (await isThere(path)) continue;
    const put = (temporary: string) => Deno.link(temporary, path);
    await placed(path, { bytes: found.bytes, mode: 0o600, put });
    return path;
  }
}

/** Puts a text in the place of a file that is still as it was found. */
export async function replaceFile(found: Found, text: string): Promise<void> {
  const { path, mode } = found;
  await placed(path, {
    bytes: new TextEncoder().encode(text),
    mode,
    put: async (temporary) => {
      const now = await readInside(dirname(path), basename(path));
      if (now === undefined || !Buffer.from(now.bytes).equals(found.bytes)) {
        throw refused(path, "it was changed meanwhile");
      }
      await Deno.rename(temporary, path);
    },
  });
}

/** Tells whether something has this name, a link that leads nowhere too. */
export async function isThere(path: string): Promise<boolean> {
  try {
    await Deno.lstat(path);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

async function placed(
  path: string,
  from: {
    readonly bytes: Uint8Array;
    readonly mode: number;
    readonly put: (temporary: string) => Promise<void>;
  },
): Promise<void> {
  const temporary = `${path}.${randomBytes(8).toString("hex")}.tmp`;
  try {
    using file = await Deno.open(temporary, { write: true, createNew: true, mode: 0o600 });
    for (let at = 0; at < from.bytes.length;) at += await file.write(from.bytes.subarray(at));
    if (Deno.build.os !== "windows") await Deno.chmod(temporary, from.mode);
    await file.sync();
    await from.put(temporary);
  } catch (error) {
    throw asRefusal(path, error);
  } finally {
    await Deno.remove(temporary).catch(() => {}); // it was renamed, or never made
  }
}

function asRefusal(path: string, error: unknown): PmlError {
  if (error instanceof PmlError) return error;
  const why = error instanceof Error ? error.message : String(error);
  return refused(path, why);
}

function refused(path: string, why: string): PmlError {
  return new PmlError("CONFIG_INVALID", `Cannot write ${quoted(path, 400)}: ${why}`, {
    hint: "It is as it was; look at it, then try again",
  });
}

/**
 * Files of the person: read inside one folder, and written whole or not at all.
 *
 * @module
 */

import { join } from "node:path";
import { exists } from "../config/workspace.ts";
import { PmlError } from "../core/errors.ts";
import { isInside } from "../io/place.ts";
import { readPlain, UNCHANGED, writeWhole } from "../io/private_files.ts";
import { refused as unused } from "../io/regular_file.ts";

/** A text file as it is now. */
export interface Found {
  /** Its real path. */
  readonly path: string;
  readonly text: string;
  readonly mode: number;
}

/** Reads a file of a folder, given by its real path, if that of the file lies in it too. */
export async function readInside(folder: string, name: string): Promise<Found | undefined> {
  const named = join(folder, name);
  if (!exists(named)) return undefined;
  try {
    const path = await Deno.realPath(named);
    if (!isInside(folder, path)) {
      throw refused(named, "it is a link that leads out of its folder");
    }
    const plain = readPlain(path);
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
    return plain && { path, text: text.decode(plain.bytes), mode: plain.mode };
  } catch (error) {
    throw refused(named, error);
  }
}

/** What a file is to hold. */
export interface Whole {
  readonly text: string;
  readonly mode: number;
  /** What it must still hold before; without this there must be no such file. */
  readonly over?: string;
}

/** Puts a whole file in place, and never over what nobody has looked at. */
export async function place(path: string, { text, mode, over }: Whole): Promise<void> {
  const bytesOf = (text: string) => new TextEncoder().encode(text);
  const before = over === undefined ? "nothing" : bytesOf(over);
  try {
    await writeWhole(path, { bytes: bytesOf(text), mode, over: before });
  } catch (error) {
    throw refused(path, error);
  }
}

/** Keeps a copy of a file beside it, readable for this person alone, and gives its path. */
export async function backUp({ path, text }: Found): Promise<string> {
  const name = (number: number) => `${path}.backup${number === 0 ? "" : `.${number}`}`;
  let number = 0;
  while (exists(name(number))) number++;
  await place(name(number), { text, mode: 0o600 });
  return name(number);
}

/** Makes the error of a file that stays as it is. */
export function refused(path: string, why: unknown): PmlError {
  if (why instanceof PmlError) return why;
  return unused(path, why instanceof Error ? why.message : String(why), UNCHANGED);
}

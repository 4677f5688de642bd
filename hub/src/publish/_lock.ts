/**
 * Reads the hashes that Deno recorded in `deno.lock` for files of other hosts.
 *
 * @module
 */

import { join } from "node:path";
import { isObject, parseJson, PmlError, quoted, readRegular } from "@casys/pml/registry";

/** The entries of a `deno.lock` for files of other hosts. */
export interface RemoteLock {
  /** The SHA-256 of each file, in hexadecimal digits, by its URL. */
  readonly hashes: ReadonlyMap<string, string>;
  readonly redirects: ReadonlyMap<string, string>;
}

const MAX_BYTES = 10_000_000;
const HASH = /^[0-9a-f]{64}$/;

/** Reads the `deno.lock` of a folder. Returns empty maps if there is none. */
export function readLock(folder: string): RemoteLock {
  const path = join(folder, "deno.lock");
  const lock = readJson(path);
  if (lock !== undefined && !isObject(lock)) throw invalidLock(path);
  const readTexts = (members: unknown, isValid: (value: string) => boolean) => {
    if (members === undefined) return new Map<string, string>();
    if (!isObject(members)) throw invalidLock(path);
    return new Map(
      Object.entries(members).map(([name, value]) => {
        if (typeof value !== "string" || !isValid(value)) throw invalidLock(path);
        return [name, value] as const;
      }),
    );
  };
  return {
    hashes: readTexts(lock?.remote, (value) => HASH.test(value)),
    redirects: readTexts(lock?.redirects, (value) => value.startsWith("https://")),
  };
}

function readJson(path: string): unknown {
  try {
    return parseJson(new TextDecoder().decode(readRegular(path, { most: MAX_BYTES }).bytes));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw invalidLock(path);
  }
}

function invalidLock(path: string): PmlError {
  return new PmlError(
    "CONFIG_INVALID",
    `Cannot read ${quoted(path, 300)}: it is not a valid deno.lock`,
    {
      hint: "Delete the file, and create it again with `deno cache`",
    },
  );
}

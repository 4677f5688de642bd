/**
 * Reads the hashes that Deno recorded of files of other hosts.
 *
 * @module
 */

import { join } from "node:path";
import { isObject, parseJson, PmlError, quoted, readRegular } from "@casys/pml/registry";

/** The entries of a `deno.lock` about files of other hosts. */
export interface RemoteLock {
  /** The SHA-256 of each file, in hexadecimal digits, by its URL. */
  readonly hashes: ReadonlyMap<string, string>;
  readonly redirects: ReadonlyMap<string, string>;
}

const MOST = 10_000_000;
const HASH = /^[0-9a-f]{64}$/;

/** Reads the lock of a folder. Returns an empty one if there is none. */
export function lockOf(folder: string): RemoteLock {
  const path = join(folder, "deno.lock");
  const lock = jsonAt(path);
  if (lock !== undefined && !isObject(lock)) throw broken(path);
  const texts = (members: unknown, is: (value: string) => boolean) => {
    if (members === undefined) return new Map<string, string>();
    if (!isObject(members)) throw broken(path);
    return new Map(
      Object.entries(members).map(([name, value]) => {
        if (typeof value !== "string" || !is(value)) throw broken(path);
        return [name, value] as const;
      }),
    );
  };
  return {
    hashes: texts(lock?.remote, (value) => HASH.test(value)),
    redirects: texts(lock?.redirects, (value) => value.startsWith("https://")),
  };
}

function jsonAt(path: string): unknown {
  try {
    return parseJson(new TextDecoder().decode(readRegular(path, { most: MOST }).bytes));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw broken(path);
  }
}

function broken(path: string): PmlError {
  return new PmlError("CONFIG_INVALID", `Cannot read ${quoted(path, 300)}: it is no lock of Deno`, {
    hint: "Delete it, and create it again with `deno cache`",
  });
}

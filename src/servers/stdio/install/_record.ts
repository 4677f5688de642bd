/**
 * Reads and writes the record of an installed package: its version, and the hash of its files.
 *
 * @module
 */

import { isAbsolute, join } from "node:path";
import { PmlError } from "../../../core/errors.ts";
import { isObject, quoted, visible } from "../../../core/json.ts";
import { writeFileWhole } from "../../../io/cache_files.ts";
import { readRegularText } from "../../../io/regular_file.ts";
import { changedSince, RECORD, treeHash, treeStamp } from "../../../io/tree.ts";

/** The identity of an installed package. */
export interface InstalledPackage {
  readonly version: string;
  /**
   * `sha256-` and a hash. The hash is the same on every system if the registry states strong hashes
   * of all archives.
   */
  readonly integrity: string;
}

/** The record that is stored in the folder of an installed package. */
export interface InstallRecord {
  readonly spec: string;
  readonly version: string;
  /** The path of the program, relative to the folder. */
  readonly file: string;
  /** The hash of all files. */
  readonly tree: string;
  /** A stamp of all files. If it is unchanged, the files need not be hashed again. */
  readonly stamp: string;
  /**
   * The hash that an approval covers: of the archives that the installer chose, or of the files
   * before scripts ran. Undefined if it equals `tree`.
   */
  readonly origin?: string;
  /** The packages whose scripts ran. */
  readonly ran?: readonly string[];
}

const REINSTALL_HINT = "Remove it, and PML installs it again";

/** Returns the identity of an installed package. */
export function packageOf({ version, tree, origin = tree }: InstallRecord): InstalledPackage {
  return { version, integrity: `sha256-${origin}` };
}

/**
 * Hashes the files. Throws `INTEGRITY_MISMATCH` if they differ from the record, and otherwise
 * stores their current stamp.
 */
export async function assertUnchanged(record: InstallRecord, folder: string): Promise<void> {
  if (await treeHash(folder) === record.tree) {
    return saveRecord({ ...record, stamp: await treeStamp(folder) }, folder);
  }
  const since = Deno.statSync(join(folder, RECORD)).mtime ?? new Date(0);
  const changed = changedSince(folder, since).slice(0, 5);
  const which = changed.length === 0 ? "" : ` (${visible(changed.join(", "), 500)})`;
  const message = `Cannot run ${
    quoted(record.spec)
  }: its files are not those that were installed${which}`;
  throw new PmlError("INTEGRITY_MISMATCH", message, {
    hint: `${REINSTALL_HINT}: ${quoted(folder, 400)}; the server must keep its data outside of it`,
  });
}

/**
 * Writes the record next to the folder, and then moves the record into the folder. The hash of the
 * folder excludes the record.
 */
export function saveRecord(record: InstallRecord, folder: string): void {
  writeFileWhole(join(folder, RECORD), JSON.stringify(record), { by: folder });
}

/**
 * Reads the record; undefined if nothing is installed in the folder. Throws `INTEGRITY_MISMATCH` if
 * the record is not valid.
 */
export function readRecord(folder: string): InstallRecord | undefined {
  const path = join(folder, RECORD);
  try {
    const json: unknown = JSON.parse(readRegularText(path));
    if (isInstalled(json)) return json;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
  }
  const message = `Cannot use ${quoted(path, 400)}: it is not a valid record of an installation`;
  throw new PmlError("INTEGRITY_MISMATCH", message, {
    hint: `${REINSTALL_HINT}: ${quoted(folder, 400)}`,
  });
}

function isInstalled(value: unknown): value is InstallRecord {
  if (!isObject(value)) return false;
  const { file } = value;
  const isText = ["spec", "version", "file", "tree", "stamp"].every((key) =>
    typeof value[key] === "string"
  );
  // guard: record-file
  return isText && !isAbsolute(String(file)) && !String(file).split(/[\\/]/).includes("..");
}

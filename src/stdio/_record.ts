/**
 * The record that stands beside an installed package: what it is, and the hash of its files.
 *
 * @module
 */

import { isAbsolute, join } from "node:path";
import { PmlError } from "../core/errors.ts";
import { isObject, quoted, visible } from "../core/json.ts";
import { keepFile } from "../io/kept.ts";
import { readRegularText } from "../io/regular_file.ts";
import { changedSince, RECORD, treeHash, treeStamp } from "../io/tree.ts";

/** What tells a package that is there from any other. */
export interface InstalledPackage {
  readonly version: string;
  /** `sha256-` and the hash over all of its files. */
  readonly integrity: string;
}

/** What was installed, as it stands beside it. */
export interface Installed {
  readonly spec: string;
  readonly version: string;
  /** Relative to the folder. */
  readonly file: string;
  /** The hash over all files, and what tells soon that none has changed. */
  readonly tree: string;
  readonly stamp: string;
  /** Once scripts ran: the hash that was there before, which is the same on every machine. */
  readonly origin?: string;
  /** The packages whose scripts ran. */
  readonly ran?: readonly string[];
}

const NEW = "Remove it to have it installed anew";

/** Gives what tells it from any other. */
export function packageOf({ version, tree, origin = tree }: Installed): InstalledPackage {
  return { version, integrity: `sha256-${origin}` };
}

/** Throws where the files are not those of the record. */
export async function assertSame(known: Installed, folder: string): Promise<void> {
  if (await treeHash(folder) === known.tree) {
    return keep({ ...known, stamp: await treeStamp(folder) }, folder);
  }
  const since = Deno.statSync(join(folder, RECORD)).mtime ?? new Date(0);
  const changed = changedSince(folder, since).slice(0, 5);
  const which = changed.length === 0 ? "" : ` (${visible(changed.join(", "), 500)})`;
  const message = `Cannot run ${
    quoted(known.spec)
  }: its files are not those that were installed${which}`;
  throw new PmlError("INTEGRITY_MISMATCH", message, {
    hint: `${NEW}: ${quoted(folder, 400)}; what the server is to keep needs a place outside of it`,
  });
}

/** Puts the record among the files; it is written outside, for the folder is looked at as a whole. */
export function keep(record: Installed, folder: string): void {
  keepFile(join(folder, RECORD), JSON.stringify(record), { by: folder });
}

/** Reads the record: a folder appears with it or not at all. */
export function recordOf(folder: string): Installed | undefined {
  const path = join(folder, RECORD);
  try {
    const said: unknown = JSON.parse(readRegularText(path));
    if (isInstalled(said)) return said;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
  }
  const message = `Cannot use ${quoted(path, 400)}: it is no record of what was installed`;
  throw new PmlError("INTEGRITY_MISMATCH", message, { hint: `${NEW}: ${quoted(folder, 400)}` });
}

function isInstalled(said: unknown): said is Installed {
  if (!isObject(said)) return false;
  const { file } = said;
  const isText = ["spec", "version", "file", "tree", "stamp"].every((key) =>
    typeof said[key] === "string"
  );
  return isText && !isAbsolute(String(file)) && !String(file).split(/[\\/]/).includes("..");
}

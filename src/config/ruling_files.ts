/**
 * Compares the files that contain rules with their state when they were read. A watcher can miss
 * changes: it does not see links above a folder, systems limit the number of watchers, and its
 * queue can overflow.
 *
 * @module
 */

import { dirname, isAbsolute, join, parse, resolve, sep } from "node:path";
import { sha256 } from "../core/hash.ts";
import { infoAt, isGone } from "../io/path_info.ts";
import { readRegular } from "../io/regular_file.ts";

/** How long a file must be unchanged, in milliseconds, before its stamp identifies its content. */
const YOUNG_MS = 2_000;
/**
 * The maximum size of a file whose content is compared, in bytes. A larger file counts as changed.
 */
const CONTENT_MAX = 4_000_000;
/** The maximum number of links on one path. The system does not follow more, either. */
const LINKS_MAX = 40;
const GONE = { stamp: "gone", isFirm: true } as const;

/** The identity of a file or a link at one time. */
interface FileIdentity {
  /** The device, inode, size and times; undefined if they cannot be read. */
  readonly stamp: string | undefined;
  /**
   * Whether a change of the content certainly changes the stamp. For some time after a change it
   * may not, because the times in the stamp are whole milliseconds.
   */
  readonly isFirm: boolean;
  /** The hash of a file's content, or the target of a link; only if the stamp is not firm. */
  readonly hash?: string | undefined;
}

/** Files and the links on the way to them, as they were at one time. */
export class RulingFiles {
  readonly #files = new Map<string, FileIdentity>();
  readonly #links = new Map<string, FileIdentity>();

  /** Notes the identity of each file, which may not exist yet, and of the links above it. */
  constructor(paths: readonly string[]) {
    for (const path of new Set(paths)) {
      for (const link of linksOn(path)) this.#links.set(link, identityOf(link, Deno.lstatSync));
      this.#files.set(path, identityOf(path, Deno.statSync));
    }
  }

  /** Returns whether a file or a link was changed or replaced, or cannot be read. */
  hasChanged(): boolean {
    return hasChanged(this.#links, Deno.lstatSync) || hasChanged(this.#files, Deno.statSync);
  }
}

/** Returns the paths of all links that the system follows on the way to a path. */
export function linksOn(path: string): readonly string[] {
  const links: string[] = [];
  let current = parse(resolve(path)).root;
  const names = namesIn(resolve(path));
  for (let name = names.shift(); name !== undefined; name = names.shift()) {
    current = name === ".." ? dirname(current) : join(current, name);
    const target = targetOf(current);
    if (target === undefined) continue;
    links.push(current);
    if (links.length > LINKS_MAX) break;
    names.unshift(...namesIn(target));
    current = isAbsolute(target) ? parse(target).root : dirname(current);
  }
  return links;
}

function namesIn(path: string): string[] {
  return path.slice(parse(path).root.length).split(sep).filter((name) => name !== "");
}

function targetOf(path: string): string | undefined {
  try {
    return infoAt(path)?.isSymlink ? Deno.readLinkSync(path) : undefined;
  } catch {
    return undefined; // it was removed meanwhile
  }
}

function hasChanged(
  identities: Map<string, FileIdentity>,
  stat: (path: string) => Deno.FileInfo,
): boolean {
  for (const [path, before] of identities) {
    const now = identityOf(path, stat, !before.isFirm);
    if (now.stamp === undefined || now.stamp !== before.stamp) return true;
    if (before.isFirm) continue;
    if (now.hash === undefined || now.hash !== before.hash) return true;
    // If the stamp is old enough now, the next comparison needs no hash.
    identities.set(path, now);
  }
  return false;
}

function identityOf(
  path: string,
  stat: (path: string) => Deno.FileInfo,
  needsHash = false,
): FileIdentity {
  try {
    const now = Date.now();
    const info = stat(path);
    const { dev, ino, size, mtime, ctime } = info;
    // The names in a folder change all the time, and none of them is a rule.
    if (info.isDirectory) return { stamp: `folder ${dev} ${ino}`, isFirm: true, hash: "" };
    const members = [dev, ino, size, mtime?.getTime(), ctime?.getTime()];
    const age = now - Math.max(mtime?.getTime() ?? NaN, ctime?.getTime() ?? NaN);
    const isFirm = age >= YOUNG_MS && members.every((member) => typeof member === "number");
    const hash = isFirm && !needsHash ? undefined : contentHash(path, info);
    return { stamp: members.join(" "), isFirm, hash };
  } catch (error) {
    return isGone(error) ? { ...GONE, hash: "" } : { stamp: undefined, isFirm: false };
  }
}

/** Returns the hash of a file, or the target of a link; undefined if the file is too large. */
function contentHash(path: string, { isSymlink, isFile, size }: Deno.FileInfo): string | undefined {
  if (isSymlink) return Deno.readLinkSync(path);
  if (!isFile || size > CONTENT_MAX) return undefined;
  return sha256(readRegular(path, { links: true, most: CONTENT_MAX }).bytes);
}

/**
 * The folder in the PML home where each running PML has a file about itself, so that `pml page` finds
 * the PML.
 *
 * @module
 */

import { join } from "node:path";
import { isObject, objectOf, textOf } from "../core/json.ts";
import { isAlive } from "../io/folder_lock.ts";
import { removeIfPossible, writeFileWhole } from "../io/cache_files.ts";
import { infoAt } from "../io/path_info.ts";
import { isSharedMode, namesIn, privateFolder, readPlain } from "../io/private_files.ts";

/** The description of a running PML in its file. */
export interface ProcessEntry {
  readonly id: string;
  readonly pid: number;
  readonly startedAt: number;
  readonly command: "stdio" | "serve";
  readonly workspace: string;
  readonly version: string;
  /** The name of its machine or container. Several machines may share a home. */
  readonly host: string;
  /** The path of its socket; undefined if it has none. */
  readonly socket?: string;
  /**
   * The text that a page has to send first. Only programs that can read the PML home know it. Landlock
   * stops confined programs from opening files, but not from connecting to sockets.
   */
  readonly key?: string;
  /** Why the process cannot be shown, if it has no socket. */
  readonly reason?: string;
}

/** The maximum size of a file, in bytes. */
const FILE_MAX = 65_536;
/** How much the clock may have been corrected since a process started, in milliseconds. */
const CLOCK_MS = 60_000;
/** How long a process of another machine is listed after its start, in milliseconds. */
const OTHER_HOST_MS = 7 * 86_400_000;
/** The age at which a file without a description is removed, in milliseconds. */
const ORPHAN_MS = 60_000;
const ID = /^[0-9a-f]{8,32}$/;

/** Returns the folder of the descriptions and the sockets. */
export function processFolder(home: string): string {
  return join(home, "processes");
}

/** Returns the path of the socket of a process. */
export function socketOf(home: string, id: string): string {
  return join(processFolder(home), id);
}

/** Writes the description of a process. */
export function writeEntry(home: string, entry: ProcessEntry): void {
  privateFolder(processFolder(home));
  writeFileWhole(fileOf(home, entry.id), JSON.stringify(entry));
}

/** Removes the description and the socket of a process. */
export function removeEntry(home: string, id: string): void {
  removeIfPossible(fileOf(home, id));
  removeIfPossible(socketOf(home, id));
}

/**
 * Returns the descriptions in a home, the oldest first. Removes those whose process is gone.
 */
export async function readEntries(home: string): Promise<readonly ProcessEntry[]> {
  const folder = processFolder(home);
  const info = infoAt(folder);
  // guard: processes-private
  if (info === undefined || !isOwnFolder(info)) return [];
  const names = (await namesIn(folder)).filter((name) => name.endsWith(".json"));
  const entries = names.flatMap((name) => readEntry(home, name.slice(0, -".json".length)) ?? []);
  const bootedAt = Date.now() - 1_000 * Deno.osUptime();
  dropOrphans(folder, await namesIn(folder));
  const thisHost = Deno.hostname();
  const alive = entries.filter(({ id, pid, startedAt, host }) => {
    // A process number of another machine says nothing about the processes of this one.
    // guard: process-elsewhere
    if (host !== thisHost) return startedAt > Date.now() - OTHER_HOST_MS;
    // After a restart of the machine, another process may have the number.
    if (isAlive(pid) && startedAt > bootedAt - CLOCK_MS) return true;
    removeEntry(home, id);
    return false;
  });
  return alive.toSorted((one, other) => one.startedAt - other.startedAt);
}

/** Removes files without a description: a process that was killed may leave its socket. */
function dropOrphans(folder: string, names: readonly string[]): void {
  for (const name of names) {
    const [id] = name.split(".");
    if (name === `${id}.json` || names.includes(`${id}.json`)) continue;
    const path = join(folder, name);
    if (Date.now() - Number(infoAt(path)?.mtime ?? NaN) > ORPHAN_MS) removeIfPossible(path);
  }
}

/** Returns whether only this user can write into a folder. */
function isOwnFolder(info: Deno.FileInfo): boolean {
  const isOwn = Deno.build.os === "windows" || info.uid === Deno.uid();
  return info.isDirectory && !isSharedMode(info) && isOwn;
}

/** Returns the description of a process; undefined if it cannot be used. */
function readEntry(home: string, id: string): ProcessEntry | undefined {
  if (!ID.test(id)) return undefined;
  try {
    const file = readPlain(fileOf(home, id), FILE_MAX);
    const value: unknown = JSON.parse(new TextDecoder().decode(file?.bytes));
    return isObject(value) ? parseEntry(home, id, objectOf(value)) : undefined;
  } catch {
    return undefined; // it was removed, or is not complete
  }
}

function parseEntry(
  home: string,
  id: string,
  value: Readonly<Record<string, unknown>>,
): ProcessEntry | undefined {
  const { pid, startedAt, command, socket, key, reason, host } = value;
  if (!Number.isSafeInteger(pid) || Number(pid) < 1 || typeof startedAt !== "number") {
    return undefined;
  }
  return {
    id,
    pid: Number(pid),
    startedAt,
    command: command === "serve" ? "serve" : "stdio",
    workspace: textOf(value.workspace),
    version: textOf(value.version),
    host: textOf(host),
    // The path follows from the id, whatever the file contains.
    ...typeof socket === "string" && { socket: socketOf(home, id) },
    ...typeof key === "string" && { key },
    ...typeof reason === "string" && { reason },
  };
}

function fileOf(home: string, id: string): string {
  return join(processFolder(home), `${id}.json`);
}

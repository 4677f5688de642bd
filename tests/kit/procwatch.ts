/**
 * Finds the processes of one test in `/proc`: by a random tag in their environment, arguments or
 * working folder, and by their parents.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readdir, readlink } from "node:fs/promises";
import process from "node:process";
import { END_MS, waitUntil } from "./wait.ts";
import type { Workspace } from "./workspace.ts";

/** A living process. */
export interface Process {
  readonly pid: number;
  readonly parent: number;
  /** The arguments, joined by blanks. */
  readonly command: string;
  /** The start time in ticks: together with the pid it identifies one process. */
  readonly started: string;
}

/** A process without its arguments. */
type Standing = Omit<Process, "command">;

/** Follows the processes of one test. */
export class ProcWatch {
  readonly #tag: string;
  readonly #since: number;
  readonly #remembered = new Map<string, Standing>();

  /**
   * Follows the processes with the tag of a workspace. Those that are older than the workspace have
   * no tag, and reading them would take most of the time.
   */
  constructor({ tag, since }: Pick<Workspace, "tag" | "since">) {
    assert.match(tag, /^\w{8,}$/, "a tag must be long enough to be found by chance nowhere");
    this.#tag = tag;
    this.#since = since;
  }

  /** Returns the processes that have the tag now, and the remembered ones that still run. */
  living(all: readonly Standing[] = standings()): Promise<readonly Process[]> {
    const remembered = all.filter((item) => this.#remembered.has(keyOf(item)));
    const others = all.filter((item) =>
      Number(item.started) >= this.#since && !remembered.includes(item) && item.pid !== process.pid
    );
    const tagged = others.map(named).filter((item) => carries(item, this.#tag));
    return Promise.resolve([...remembered.map(named), ...tagged]);
  }

  /** Remembers a process and all its descendants, so that they count even without the tag. */
  async remember(pid: number): Promise<readonly Process[]> {
    const found = await treeOf(pid);
    for (const item of found) this.#remembered.set(keyOf(item), item);
    return found;
  }

  /** Remembers the processes with the tag, and all their descendants. */
  async rememberTagged(): Promise<void> {
    const all = standings();
    for (const { pid } of await this.living(all)) {
      for (const item of treeIn(all, pid)) this.#remembered.set(keyOf(item), item);
    }
  }

  /** Asserts that no process is left, after a short wait for those that are about to end. */
  async assertNothingLeft(
    { withinMs = END_MS }: { readonly withinMs?: number } = {},
  ): Promise<void> {
    const gone = await waitUntil(async () => (await this.living()).length === 0, withinMs);
    if (gone) return;
    const left = (await this.living()).map(({ pid, command }) => `${pid} ${command.slice(0, 200)}`);
    assert.deepEqual(left, [], "processes are left");
  }
}

/** Returns a process and all its living descendants. */
export function treeOf(pid: number): Promise<readonly Process[]> {
  return Promise.resolve(treeIn(standings(), pid).map(named));
}

function treeIn(all: readonly Standing[], pid: number): readonly Standing[] {
  const found = all.filter((item) => item.pid === pid);
  for (const known of found) found.push(...all.filter((item) => item.parent === known.pid));
  return found;
}

/** Returns every living process; a zombie counts as ended. */
export function processes(): Promise<readonly Process[]> {
  return Promise.resolve(standings().map(named));
}

/** Returns the resident memory of a process in bytes, or 0 if it has ended. */
export function rssOf(pid: number): Promise<number> {
  const status = readOrNothing(`/proc/${pid}/status`);
  return Promise.resolve(Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024);
}

/** Returns the targets of the open file descriptors of a process. */
export async function openFiles(pid: number): Promise<readonly string[]> {
  const folder = `/proc/${pid}/fd`;
  const names = await readdir(folder).catch(() => []);
  const links = await Promise.all(
    names.map((name) => readlink(`${folder}/${name}`).catch(() => "")),
  );
  return links.filter((link) => link !== "");
}

/** Reads the state of every living process, without its arguments. */
function standings(): readonly Standing[] {
  // No read of `/proc` blocks, and a promise for each file costs far more than the read.
  return Array.from(Deno.readDirSync("/proc"), ({ name }) => name)
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => readStanding(Number(name)) ?? []);
}

function readStanding(pid: number): Standing | undefined {
  const stat = readOrNothing(`/proc/${pid}/stat`);
  // The name is in parentheses and may contain any character.
  const [state, parent, ...rest] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  if (stat === "" || state === "Z" || state === "X") return undefined;
  return { pid, parent: Number(parent), started: rest[17] ?? "" };
}

function named(item: Standing): Process {
  const command = readOrNothing(`/proc/${item.pid}/cmdline`).replaceAll("\0", " ").trim();
  return { ...item, command };
}

function carries({ pid, command }: Process, tag: string): boolean {
  if (command.includes(tag) || readOrNothing(`/proc/${pid}/environ`).includes(tag)) return true;
  try {
    return Deno.readLinkSync(`/proc/${pid}/cwd`).includes(tag);
  } catch {
    return false; // the process has ended, or belongs to another user
  }
}

function readOrNothing(path: string): string {
  try {
    return Deno.readTextFileSync(path);
  } catch {
    return ""; // the process has ended, or belongs to another user
  }
}

function keyOf({ pid, started }: Standing): string {
  return `${pid} ${started}`;
}

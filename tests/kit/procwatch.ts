/**
 * Looks through `/proc` for the processes of one test: by a random tag in their environment,
 * arguments or working folder, and by who started whom.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readdir, readlink } from "node:fs/promises";
import process from "node:process";
import { END_MS, waitUntil } from "./wait.ts";

/** A living process. */
export interface Process {
  readonly pid: number;
  readonly parent: number;
  /** Its arguments, joined by blanks. */
  readonly command: string;
  /** When it started, in ticks: with the pid it names one process for ever. */
  readonly started: string;
}

/** A process without its arguments. */
type Standing = Omit<Process, "command">;

/**
 * When this file was loaded, in ticks and with a second to spare: what runs for longer carries no tag
 * of a test, and looking through it would take most of what a look takes.
 */
const SINCE = (Number(readOrNothing("/proc/uptime").split(" ")[0]) - 1) * 100;

/** Follows the processes of one test. */
export class ProcWatch {
  readonly #tag: string;
  readonly #remembered = new Map<string, Standing>();

  /** Follows the processes that carry a tag. */
  constructor(tag: string) {
    assert.match(tag, /^\w{8,}$/, "a tag must be long enough to be found by chance nowhere");
    this.#tag = tag;
  }

  /** Gives the processes that carry the tag now, and those remembered that still live. */
  living(): Promise<readonly Process[]> {
    const all = standings();
    const remembered = all.filter((item) => this.#remembered.has(keyOf(item)));
    const others = all.filter((item) =>
      Number(item.started) >= SINCE && !remembered.includes(item) && item.pid !== process.pid
    );
    const tagged = others.map(named).filter((item) => carries(item, this.#tag));
    return Promise.resolve([...remembered.map(named), ...tagged]);
  }

  /** Remembers a process and all that it started, so that they count even without the tag. */
  async remember(pid: number): Promise<readonly Process[]> {
    const found = await treeOf(pid);
    for (const item of found) this.#remembered.set(keyOf(item), item);
    return found;
  }

  /** Remembers the processes that carry the tag, and all that they started. */
  async rememberTagged(): Promise<void> {
    const all = standings();
    for (const { pid } of await this.living()) {
      for (const item of treeIn(all, pid)) this.#remembered.set(keyOf(item), item);
    }
  }

  /** Asserts that nothing is left, waiting a little for what is about to end. */
  async assertNothingLeft(
    { withinMs = END_MS }: { readonly withinMs?: number } = {},
  ): Promise<void> {
    const gone = await waitUntil(async () => (await this.living()).length === 0, withinMs);
    if (gone) return;
    const left = (await this.living()).map(({ pid, command }) => `${pid} ${command.slice(0, 200)}`);
    assert.deepEqual(left, [], "processes are left");
  }
}

/** Gives a process and all its living descendants. */
export function treeOf(pid: number): Promise<readonly Process[]> {
  return Promise.resolve(treeIn(standings(), pid).map(named));
}

function treeIn(all: readonly Standing[], pid: number): readonly Standing[] {
  const found = all.filter((item) => item.pid === pid);
  for (const known of found) found.push(...all.filter((item) => item.parent === known.pid));
  return found;
}

/** Gives every living process; a zombie counts as gone. */
export function processes(): Promise<readonly Process[]> {
  return Promise.resolve(standings().map(named));
}

/** Gives the resident memory of a process in bytes, or 0 when it is gone. */
export function rssOf(pid: number): Promise<number> {
  const status = readOrNothing(`/proc/${pid}/status`);
  return Promise.resolve(Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024);
}

/** Gives what the open file descriptors of a process lead to. */
export async function openFiles(pid: number): Promise<readonly string[]> {
  const folder = `/proc/${pid}/fd`;
  const names = await readdir(folder).catch(() => []);
  const links = await Promise.all(
    names.map((name) => readlink(`${folder}/${name}`).catch(() => "")),
  );
  return links.filter((link) => link !== "");
}

/** Reads what every living process is, without its arguments. */
function standings(): readonly Standing[] {
  // Nothing in `/proc` has to be waited for, and a promise for each file costs far more than it.
  return Array.from(Deno.readDirSync("/proc"), ({ name }) => name)
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => readStanding(Number(name)) ?? []);
}

function readStanding(pid: number): Standing | undefined {
  const stat = readOrNothing(`/proc/${pid}/stat`);
  // The name stands in parentheses and may hold any character.
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

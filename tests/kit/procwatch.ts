/**
 * Looks through `/proc` for the processes of one test: by a random tag in their environment,
 * arguments or working folder, and by who started whom.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
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

/** Follows the processes of one test. */
export class ProcWatch {
  readonly #tag: string;
  readonly #remembered = new Map<string, Process>();

  /** Follows the processes that carry a tag. */
  constructor(tag: string) {
    assert.match(tag, /^\w{8,}$/, "a tag must be long enough to be found by chance nowhere");
    this.#tag = tag;
  }

  /** Gives the processes that carry the tag now, and those remembered that still live. */
  async living(): Promise<readonly Process[]> {
    const all = await processes();
    const remembered = all.filter((item) => this.#remembered.has(keyOf(item)));
    const others = all.filter((item) => !remembered.includes(item) && item.pid !== process.pid);
    return [...remembered, ...others.filter((item) => carries(item, this.#tag))];
  }

  /** Remembers a process and all that it started, so that they count even without the tag. */
  async remember(pid: number): Promise<readonly Process[]> {
    const found = await treeOf(pid);
    for (const item of found) this.#remembered.set(keyOf(item), item);
    return found;
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
export async function treeOf(pid: number): Promise<readonly Process[]> {
  const all = await processes();
  const found = all.filter((item) => item.pid === pid);
  for (const known of found) found.push(...all.filter((item) => item.parent === known.pid));
  return found;
}

/** Gives every living process; a zombie counts as gone. */
export function processes(): Promise<readonly Process[]> {
  // Nothing in `/proc` has to be waited for, and a promise for each file costs far more than it.
  const names = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  const found = names.map((name) => readProcess(Number(name)));
  return Promise.resolve(found.filter((item) => item !== undefined));
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

function readProcess(pid: number): Process | undefined {
  const stat = readOrNothing(`/proc/${pid}/stat`);
  // The name stands in parentheses and may hold any character.
  const [state, parent, ...rest] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  if (stat === "" || state === "Z" || state === "X") return undefined;
  const command = readOrNothing(`/proc/${pid}/cmdline`).replaceAll("\0", " ").trim();
  return { pid, parent: Number(parent), command, started: rest[17] ?? "" };
}

function carries({ pid, command }: Process, tag: string): boolean {
  if (command.includes(tag) || readOrNothing(`/proc/${pid}/environ`).includes(tag)) return true;
  try {
    return readlinkSync(`/proc/${pid}/cwd`).includes(tag);
  } catch {
    return false; // the process has ended, or belongs to another user
  }
}

function readOrNothing(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return ""; // the process has ended, or belongs to another user
  }
}

function keyOf({ pid, started }: Process): string {
  return `${pid} ${started}`;
}

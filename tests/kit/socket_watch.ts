/**
 * Watches the open internet sockets of a process and its children.
 *
 * @module
 */

import { readdir, readFile, readlink } from "node:fs/promises";
import { treeOf } from "./procwatch.ts";

/** Looks repeatedly until it is disposed. */
export class SocketWatch implements AsyncDisposable {
  /** Every observed socket: its family and its target. */
  readonly seen = new Set<string>();
  /** The number of looks. */
  looks = 0;
  readonly #pid: number;
  readonly #looking: Promise<void>;
  #isOver = false;

  /** Starts to watch a process and all its descendants. */
  constructor(pid: number) {
    this.#pid = pid;
    this.#looking = this.#lookOn();
  }

  /** Ends with a last look. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await this.#looking;
  }

  async #lookOn(): Promise<void> {
    while (true) {
      const isLast = this.#isOver;
      await this.#look();
      if (isLast) return;
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }

  async #look(): Promise<void> {
    const tables = await Promise.all(["tcp", "tcp6", "udp", "udp6", "raw"].map(tableOf));
    const known = new Map(tables.flatMap((table) => [...table]));
    for (const { pid } of await treeOf(this.#pid)) {
      const names = (await socketsOf(pid)).flatMap((inode) => known.get(inode) ?? []);
      for (const one of names) this.seen.add(one);
    }
    this.looks++;
  }
}

/** Returns the inodes of the sockets of a family, with their targets. */
async function tableOf(family: string): Promise<ReadonlyMap<string, string>> {
  const text = await readFile(`/proc/net/${family}`, "utf8").catch(() => "");
  const rows = text.split("\n").slice(1).map((line) => line.trim().split(/\s+/));
  return new Map(rows.map((row) => [row[9] ?? "", `${family} ${row[2]}`]));
}

async function socketsOf(pid: number): Promise<readonly string[]> {
  const folder = `/proc/${pid}/fd`;
  const names = await readdir(folder).catch(() => []);
  const links = await Promise.all(
    names.map((name) => readlink(`${folder}/${name}`).catch(() => "")),
  );
  return links.flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? []);
}

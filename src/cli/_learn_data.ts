/**
 * The data that a server has before it gets its own data folder: `pml learn` names it, and copies it
 * into that folder if the user wants that.
 *
 * @module
 */

import { dirname } from "node:path";
import { visible } from "../core/json.ts";
import { infoAt } from "../io/place.ts";
import { readRegular } from "../io/regular_file.ts";
import type { PresentData } from "../servers/stdio/learn.ts";
import type { CommandContext } from "./_command_context.ts";
import { agrees } from "./_terminal.ts";
import { tell } from "./out.ts";

/** The largest file that is copied, in bytes. */
const MOST_BYTES = 512 * 1024 * 1024;
/** The ends of the names of a database of SQLite and of the files next to it. */
const BESIDE = ["", "-wal", "-shm", "-journal"];

/** Copies of data, which are removed if the data folder is not used in the end. */
export class DataCopies {
  readonly #made: string[] = [];
  readonly #facts: string[] = [];
  /** The files that the user was asked about. */
  readonly #asked = new Set<string>();

  /** Names the data that a server would no longer see, and offers to copy the newest. */
  async offer(at: CommandContext, data: readonly PresentData[]): Promise<void> {
    const [newest] = data;
    if (newest === undefined || this.#asked.has(newest.from)) return;
    this.#asked.add(newest.from);
    const { from, to } = newest;
    const lines = dataLines(data);
    tell(lines.join("\n"));
    const question = `Copy ${visible(from, 400)} there first? The original stays`;
    if (infoAt(to) !== undefined || !await agrees(question, at)) {
      this.#facts.push(...lines);
      return;
    }
    for (const end of BESIDE) {
      if (infoAt(from + end) !== undefined) this.#copy(from + end, to + end);
    }
  }

  /** Lines about data that was not copied. */
  get facts(): readonly string[] {
    return this.#facts;
  }

  /** The copied files. */
  get paths(): readonly string[] {
    return this.#made;
  }

  /** Removes the copies: without the data folder, the server uses the originals. */
  undo(): void {
    for (const path of this.#made.splice(0)) Deno.removeSync(path);
  }

  #copy(from: string, to: string): void {
    // Neither a link nor a device: the file may lie in a package.
    const { bytes } = readRegular(from, { most: MOST_BYTES });
    Deno.mkdirSync(dirname(to), { recursive: true, mode: 0o700 });
    Deno.writeFileSync(to, bytes, { createNew: true, mode: 0o600 });
    this.#made.push(to);
  }
}

/** Returns lines about data that a server has, and that it would not see in its data folder. */
export function dataLines(data: readonly PresentData[]): readonly string[] {
  const [newest] = data;
  if (newest === undefined) return [];
  const isTaken = infoAt(newest.to) !== undefined;
  return [
    "It has data that it does not see in its own folder:",
    ...data.map(({ from, bytes, changed }) =>
      `  ${visible(from, 400)} (${bytes} bytes, changed ${new Date(changed).toISOString()})`
    ),
    isTaken
      ? `Its own folder has data already, which stays: ${visible(newest.to, 400)}`
      : `In its own folder, that is ${visible(newest.to, 400)}`,
  ];
}

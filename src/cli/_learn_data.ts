/**
 * The data that a server stored before it gets its own data folder: `pml learn` lists this data, and
 * copies it into that folder if the user wants that.
 *
 * @module
 */

import { dirname } from "node:path";
import { visible } from "../core/json.ts";
import { infoAt } from "../io/path_info.ts";
import { readRegular } from "../io/regular_file.ts";
import type { PresentData } from "../servers/stdio/learn.ts";
import type { CommandContext } from "./_command_context.ts";
import { agrees } from "./_terminal.ts";
import { tell } from "./out.ts";

/** The largest file that is copied, in bytes. */
const MOST_BYTES = 512 * 1024 * 1024;
/** The suffixes of a SQLite database and of the files that belong to it. */
const SUFFIXES = ["", "-wal", "-shm", "-journal"];

/** Copies of data, which are removed if the user does not accept the data folder. */
export class DataCopies {
  readonly #paths: string[] = [];
  readonly #facts: string[] = [];
  /** The files about which the user was asked. */
  readonly #asked = new Set<string>();

  /** Lists the data that a server would no longer see, and offers to copy the newest file. */
  async offer(context: CommandContext, data: readonly PresentData[]): Promise<void> {
    const [newest] = data;
    if (newest === undefined || this.#asked.has(newest.from)) return;
    this.#asked.add(newest.from);
    const { from, to } = newest;
    const lines = dataLines(data);
    tell(lines.join("\n"));
    const question = `Copy ${visible(from, 400)} there first? The original stays`;
    if (infoAt(to) !== undefined || !await agrees(question, context)) {
      this.#facts.push(...lines);
      return;
    }
    for (const suffix of SUFFIXES) {
      if (infoAt(from + suffix) !== undefined) this.#copy(from + suffix, to + suffix);
    }
  }

  /** Lines about data that was not copied. */
  get facts(): readonly string[] {
    return this.#facts;
  }

  /** The copied files. */
  get paths(): readonly string[] {
    return this.#paths;
  }

  /** Removes the copies, because without the data folder the server uses the original files. */
  undo(): void {
    for (const path of this.#paths.splice(0)) Deno.removeSync(path);
  }

  #copy(from: string, to: string): void {
    // Follows no link and reads no device, because the file may be part of a package.
    const { bytes } = readRegular(from, { most: MOST_BYTES });
    Deno.mkdirSync(dirname(to), { recursive: true, mode: 0o700 });
    Deno.writeFileSync(to, bytes, { createNew: true, mode: 0o600 });
    this.#paths.push(to);
  }
}

/** Returns lines about data that a server would not see in its data folder. */
export function dataLines(data: readonly PresentData[]): readonly string[] {
  const [newest] = data;
  if (newest === undefined) return [];
  const isTaken = infoAt(newest.to) !== undefined;
  return [
    "It has data outside of its folder, which it would no longer see:",
    ...data.map(({ from, bytes, changed }) =>
      `  ${visible(from, 400)} (${bytes} bytes, changed ${new Date(changed).toISOString()})`
    ),
    isTaken
      ? `Its own folder has data already, which stays: ${visible(newest.to, 400)}`
      : `The path in its own folder is ${visible(newest.to, 400)}`,
  ];
}

/**
 * Stores the first definition that a server listed for each tool, so that PML also detects changes
 * of tools that were never called.
 *
 * @module
 */

import { parseExact } from "../core/exact_json.ts";
import { isObject, memberOf, objectOf } from "../core/json.ts";
import { listedFile } from "./pins_file.ts";
import type { ServerIdentity } from "./server_identity.ts";
import { isSkillPin } from "../protocol/skills.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { stampAt } from "../io/path_info.ts";
import {
  readPlainText,
  readPrivateText,
  unlessGone,
  type WarningLog,
  withLock,
  writePrivate,
} from "../io/private_files.ts";

type Definitions = Readonly<Record<string, ToolDefinition>>;

interface SourceDefinitions {
  readonly source: unknown;
  readonly tools: Definitions;
}

interface StoredDefinitions extends SourceDefinitions {
  readonly stamp: string | undefined;
}

/** The first definitions of the servers of one workspace, one file for each server. */
export class ListedDefinitions {
  readonly #home: string;
  readonly #folder: string;
  readonly #log: WarningLog;
  readonly #cache = new Map<string, StoredDefinitions>();
  /**
   * The definitions that are being written, by server. `first()` and `names()` return them, too.
   */
  readonly #adding = new Map<string, SourceDefinitions>();

  /** Takes the PML home and the folder of the workspace; reads nothing. */
  constructor(home: string, folder: string, log: WarningLog) {
    this.#home = home;
    this.#folder = folder;
    this.#log = log;
  }

  /** Returns the definition that a server listed first under a name. */
  first({ name, pinned }: ServerIdentity, tool: string): ToolDefinition | undefined {
    const { source, tools } = this.#knownOf(name);
    return source === pinned.source ? memberOf(tools, tool) : undefined;
  }

  /** Returns the names of all tools that a server ever listed. Skills are not tools. */
  names(server: string): readonly string[] {
    return Object.keys(this.#knownOf(server).tools).filter((name) => !isSkillPin(name));
  }

  /**
   * Adds tools that were never listed before, and keeps the earlier definition of a name. `first()`
   * and `names()` return the tools at once; the promise resolves when they are written.
   */
  async add(
    { name, pinned: { source } }: ServerIdentity,
    tools: readonly ToolDefinition[],
  ): Promise<void> {
    // If two tools have the same name, the first one is used.
    const more = Object.fromEntries(tools.toReversed().map((tool) => [tool.name, tool]));
    const adding = withKnown({ source, tools: more }, this.#adding.get(name));
    this.#adding.set(name, adding);
    try {
      await this.#write(name, adding);
    } finally {
      if (this.#adding.get(name) === adding) this.#adding.delete(name);
    }
  }

  async #write(server: string, adding: SourceDefinitions): Promise<void> {
    const file = this.#fileOf(server);
    await withLock(`${file}.lock`, async () => {
      const before = this.#storedOf(server);
      const { source, tools } = withKnown(adding, before);
      const isKnown = before.source === source &&
        Object.keys(tools).length === Object.keys(before.tools).length;
      if (!isKnown) await writePrivate(file, { path: this.#folder, server, source, tools });
    });
  }

  /** Returns the stored definitions of a server, and those that are being written. */
  #knownOf(server: string): SourceDefinitions {
    const adding = this.#adding.get(server);
    const stored = this.#storedOf(server);
    return adding === undefined ? stored : withKnown(adding, stored);
  }

  /** Removes the records of servers. */
  async remove(names: readonly string[]): Promise<void> {
    await Promise.all(names.map((name) => Deno.remove(this.#fileOf(name)).catch(unlessGone)));
  }

  /** Returns the text of the record of a server; undefined if there is none. */
  textOf(server: string): string | undefined {
    return readPlainText(this.#fileOf(server));
  }

  /** Replaces the record of a server with a text of `textOf()`. */
  async restore(server: string, text: string | undefined): Promise<void> {
    if (text === undefined) await this.remove([server]);
    else await writePrivate(this.#fileOf(server), parseExact(text));
  }

  #storedOf(server: string): StoredDefinitions {
    const file = this.#fileOf(server);
    const stamp = stampAt(file);
    const cached = this.#cache.get(server);
    if (cached !== undefined && cached.stamp === stamp) return cached;
    const parse = (text: string) => objectOf(parseExact(text));
    const { source, tools } = readPrivateText(file, parse, this.#log) ?? {};
    const stored = { stamp, source, tools: isObject(tools) ? tools as unknown as Definitions : {} };
    this.#cache.set(server, stored);
    return stored;
  }

  #fileOf(server: string): string {
    return listedFile({ home: this.#home, root: this.#folder }, server);
  }
}

/**
 * Returns the definitions, and the known definitions of the same source. If both have a name, the
 * known definition is used.
 */
function withKnown(
  { source, tools }: SourceDefinitions,
  known: SourceDefinitions | undefined,
): SourceDefinitions {
  const isSame = known !== undefined && known.source === source;
  return { source, tools: isSame ? { ...tools, ...known.tools } : tools };
}

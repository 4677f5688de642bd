/**
 * Stores the first definition that a server listed for each tool, so that PML also detects changes
 * of tools that were never called.
 *
 * @module
 */

import { join } from "node:path";
import { parseExact } from "../core/exact_json.ts";
import { sha256 } from "../core/hash.ts";
import { isObject, memberOf, objectOf } from "../core/json.ts";
import type { ServerIdentity } from "./server_identity.ts";
import { isSkillPin } from "../protocol/skills.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { stampAt } from "../io/place.ts";
import {
  locked,
  readPrivateText,
  unlessGone,
  type WarningLog,
  writePrivate,
} from "../io/private_files.ts";

type Definitions = Readonly<Record<string, ToolDefinition>>;

interface StoredDefinitions {
  readonly stamp: string | undefined;
  readonly source: unknown;
  readonly tools: Definitions;
}

/** The first definitions of the servers of one workspace, one file for each server. */
export class ListedDefinitions {
  readonly #home: string;
  readonly #folder: string;
  readonly #log: WarningLog;
  readonly #read = new Map<string, StoredDefinitions>();

  /** Takes the PML home and the folder of the workspace; reads nothing. */
  constructor(home: string, folder: string, log: WarningLog) {
    this.#home = home;
    this.#folder = folder;
    this.#log = log;
  }

  /** Returns the definition that a server listed first under a name. */
  first({ name, pinned }: ServerIdentity, tool: string): ToolDefinition | undefined {
    const { source, tools } = this.#of(name);
    return source === pinned.source ? memberOf(tools, tool) : undefined;
  }

  /** Returns the names of all tools that a server ever listed. Skills are not tools. */
  names(server: string): readonly string[] {
    return Object.keys(this.#of(server).tools).filter((name) => !isSkillPin(name));
  }

  /** Adds tools that were never listed before. The earlier definition of a name stays. */
  async add(
    { name, pinned }: ServerIdentity,
    tools: readonly ToolDefinition[],
  ): Promise<void> {
    const file = this.#fileOf(name);
    await locked(`${file}.lock`, async () => {
      const before = this.#of(name);
      const known = before.source === pinned.source ? before.tools : {};
      // If two tools have the same name, the first one is used.
      const more = Object.fromEntries(tools.toReversed().map((tool) => [tool.name, tool]));
      const all = { ...more, ...known };
      if (Object.keys(all).length === Object.keys(known).length) return;
      await writePrivate(file, {
        path: this.#folder,
        server: name,
        source: pinned.source,
        tools: all,
      });
    });
  }

  /** Removes the records of servers. */
  async remove(names: readonly string[]): Promise<void> {
    await Promise.all(names.map((name) => Deno.remove(this.#fileOf(name)).catch(unlessGone)));
  }

  #of(server: string): StoredDefinitions {
    const file = this.#fileOf(server);
    const stamp = stampAt(file);
    const cached = this.#read.get(server);
    if (cached !== undefined && cached.stamp === stamp) return cached;
    const parse = (text: string) => objectOf(parseExact(text));
    const { source, tools } = readPrivateText(file, parse, this.#log) ?? {};
    const stored = { stamp, source, tools: isObject(tools) ? tools as unknown as Definitions : {} };
    this.#read.set(server, stored);
    return stored;
  }

  #fileOf(server: string): string {
    const name = sha256(JSON.stringify([this.#folder, server]));
    return join(this.#home, "pins", "listed", `${name}.json`);
  }
}

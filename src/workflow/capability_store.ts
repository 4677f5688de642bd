/**
 * The capabilities in the PML home. Each is a file named by its hash; the index holds which hash the
 * person approved under which name. What is not the approved one does not run.
 *
 * @module
 */

import { join } from "node:path";
import { asPmlError, PmlError } from "../core/errors.ts";
import { isObject, quoted } from "../core/json.ts";
import type { ToolDefinition } from "../core/tool.ts";
import type { ToolId } from "../core/tool_id.ts";
import {
  locked,
  readPlain,
  readPrivate,
  removeLeftovers,
  unlessGone,
  writePrivate,
} from "../io/private_files.ts";
import {
  type Capability,
  capabilityHash,
  capabilityId,
  fileForm,
  parseCapability,
} from "./capability.ts";
import { capabilitiesFolder, capabilitiesIndex } from "./capability_files.ts";

/** The approved hashes, by name. */
export type Approved = ReadonlyMap<ToolId, string>;

/** How many capabilities one person may keep. */
const MOST = 1_000;
const INDEX_MAX = 1_000_000;
const FILE_MAX = 4_000_000;

/** Reads and writes what the person saved. */
export class CapabilityStore {
  readonly #folder: string;
  readonly #index: string;

  /** Takes the PML home; opens nothing. */
  constructor(home: string) {
    this.#folder = capabilitiesFolder(home);
    this.#index = capabilitiesIndex(home);
  }

  /** Returns what the person approved. Throws CONFIG_INVALID if the file cannot be read. */
  approved(): Approved {
    const path = this.#index;
    try {
      const plain = readPlain(path, INDEX_MAX);
      return plain === undefined ? new Map() : parseIndex(textOf(plain.bytes));
    } catch (error) {
      const why = error instanceof Error ? error.message : "";
      throw new PmlError("CONFIG_INVALID", `Cannot use ${quoted(path, 400)}: ${why}`, {
        hint: "No capability runs until it is mended or removed; import them again from exports",
        cause: error,
      });
    }
  }

  /**
   * Reads a capability and compares it with what the person approved. Throws INTEGRITY_MISMATCH if
   * it is another one, or is gone; UNKNOWN_TOOL if none was approved under this name.
   */
  load(id: ToolId): Capability {
    const approved = this.approved().get(id);
    if (approved === undefined) throw noCapability(id);
    const path = this.#path(approved);
    const mismatch = (why: string, cause?: unknown) =>
      new PmlError("INTEGRITY_MISMATCH", `Cannot run "${id}": ${why}`, {
        hint: `Look at ${quoted(path, 400)}; then save it again, import it from an export, or ` +
          `delete it with \`pml capability delete ${id}\``,
        ...(cause === undefined ? {} : { cause }),
      });
    let capability: Capability;
    try {
      const plain = readPlain(path, FILE_MAX);
      if (plain === undefined) throw new TypeError("it is not there");
      capability = parseCapability(JSON.parse(textOf(plain.bytes)));
    } catch (error) {
      throw mismatch(`its file cannot be read: ${asPmlError(error).message}`, error);
    }
    const hash = capabilityHash(capability);
    if (hash === approved) return capability;
    throw mismatch(`its file was changed: it is ${hash}, and ${approved} was approved`);
  }

  /**
   * Saves a capability as approved. `over` is the hash that was shown as the one before; if another
   * one is there by now, nothing is saved.
   */
  async save(
    id: ToolId,
    capability: Capability,
    { over }: { readonly over: string | undefined },
  ): Promise<void> {
    const hash = capabilityHash(capability);
    await this.#change((index) => {
      if (index.get(id) !== over) throw changed(id);
      if (index.size >= MOST && over === undefined) throw tooMany();
      return new Map([...index, [id, hash]]);
    }, () => writePrivate(this.#path(hash), fileForm(capability)));
    await Deno.remove(this.#draft(id)).catch(unlessGone);
  }

  /** Gives a capability another name. What was approved stays approved. */
  async rename(from: ToolId, to: ToolId): Promise<void> {
    await this.#change((index) => {
      const hash = index.get(from);
      if (hash === undefined) throw noCapability(from);
      if (index.has(to)) throw taken(to);
      return new Map([...index].map(([id, each]) => [id === from ? to : id, each]));
    });
  }

  /** Removes a capability. */
  async delete(id: ToolId): Promise<void> {
    await this.#change((index) => {
      if (!index.has(id)) throw noCapability(id);
      return new Map([...index].filter(([each]) => each !== id));
    });
  }

  /** Keeps definitions, so that a later one can be compared with them. */
  async keep(definitions: ReadonlyMap<string, ToolDefinition>): Promise<void> {
    for (const [hash, definition] of definitions) {
      await writePrivate(this.#path(hash, "definitions"), definition);
    }
  }

  /** Returns a definition that was kept; undefined if it is not there, or is another one. */
  kept(
    hash: string,
    hashOf: (definition: ToolDefinition) => string,
  ): ToolDefinition | undefined {
    const parse = (json: unknown) => {
      const definition = json as ToolDefinition; // of this hash, so it is what was kept
      if (hashOf(definition) !== hash) throw new TypeError("it is another one");
      return definition;
    };
    return readPrivate(this.#path(hash, "definitions"), { parse, warn: () => {} });
  }

  /** Keeps what the person was not asked about yet, as an export that can be imported. */
  async draft(id: ToolId, exported: object): Promise<string> {
    const path = this.#draft(id);
    await writePrivate(path, exported);
    return path;
  }

  #draft(id: ToolId): string {
    return join(this.#folder, "drafts", `${id.replace(":", "__")}.json`);
  }

  #path(hash: string, ...under: readonly string[]): string {
    return join(this.#folder, ...under, `${hash}.json`);
  }

  async #change(
    change: (index: Approved) => Approved,
    before: () => Promise<void> = () => Promise.resolve(),
  ): Promise<void> {
    await locked(`${this.#index}.lock`, async () => {
      await removeLeftovers(this.#index);
      const was = this.approved();
      const index = change(was);
      await before();
      const capabilities = Object.fromEntries([...index].map(([id, hash]) => [id, { hash }]));
      await writePrivate(this.#index, { version: 1, capabilities });
      const kept = new Set(index.values());
      for (const hash of was.values()) {
        if (!kept.has(hash)) await Deno.remove(this.#path(hash)).catch(unlessGone);
      }
    });
  }
}

/** Returns the error for a name under which nothing is saved. */
export function noCapability(id: string): PmlError {
  return new PmlError("UNKNOWN_TOOL", `Cannot find the capability ${quoted(id)}`, {
    hint: "See what is saved with `pml capability list`",
  });
}

function parseIndex(text: string): Approved {
  const json: unknown = JSON.parse(text);
  const isIndex = isObject(json) && json.version === 1 && isObject(json.capabilities);
  if (!isIndex) throw new TypeError("wanted version 1 and capabilities");
  const entries = Object.entries(json.capabilities as Record<string, unknown>);
  return new Map(entries.map(([name, entry]) => {
    const hash = isObject(entry) ? entry.hash : undefined;
    if (typeof hash !== "string" || !/^sha256-[0-9a-f]{64}$/.test(hash)) {
      throw new TypeError(`${quoted(name)} has no hash`);
    }
    return [capabilityId(name), hash];
  }));
}

function textOf(bytes: Uint8Array): string {
  return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
}

function changed(id: ToolId): PmlError {
  return new PmlError("APPROVAL_STALE", `Cannot save "${id}": it was changed meanwhile`, {
    hint: "Save it again: the question then shows what it replaces",
  });
}

function taken(id: ToolId): PmlError {
  return new PmlError("NAME_CONFLICT", `Cannot rename it to "${id}": there is one of this name`, {
    hint: "Choose another name, or delete that one first",
  });
}

function tooMany(): PmlError {
  return new PmlError("OVERLOADED", `Cannot save more than ${MOST} capabilities`, {
    hint: "Delete some with `pml capability delete`",
  });
}

/**
 * Stores capabilities in the PML home. Each file is named by the hash of its content. The index
 * maps names to the hashes that the user approved. Other content does not run.
 *
 * @module
 */

import { join } from "node:path";
import { asPmlError, PmlError } from "../core/errors.ts";
import { isObject, objectOf, quoted } from "../core/json.ts";
import { nearName } from "../core/near_name.ts";
import type { ToolId } from "../core/tool_id.ts";
import { parseExact } from "../core/exact_json.ts";
import { parseJsonBytes } from "../core/utf8.ts";
import {
  readPlain,
  removeLeftovers,
  unlessGone,
  withLock,
  writePrivate,
} from "../io/private_files.ts";
import {
  type Capability,
  capabilityHash,
  capabilityId,
  HASH,
  parseCapability,
  toFileJson,
} from "../servers/capability/capability.ts";
import { capabilitiesFolder, capabilitiesIndex } from "./capability_files.ts";

/** The approved hashes, by name. */
export type Approved = ReadonlyMap<ToolId, string>;

/** The maximum number of capabilities in one PML home. */
const CAPABILITIES_MAX = 1_000;
/** The maximum size of a file, in bytes. A capability may contain the definitions of many tools. */
const FILE_MAX = 64_000_000;

/** Reads and writes saved capabilities. */
export class CapabilityStore {
  readonly #folder: string;
  readonly #index: string;

  /** Creates a store in the PML home. Opens nothing. */
  constructor(home: string) {
    this.#folder = capabilitiesFolder(home);
    this.#index = capabilitiesIndex(home);
  }

  /** Returns the approved hashes. Throws CONFIG_INVALID if the index cannot be read. */
  readApproved(): Approved {
    try {
      return parseIndex(readJson(this.#index) ?? { version: 1, capabilities: {} });
    } catch (error) {
      const why = asPmlError(error).message;
      throw new PmlError("CONFIG_INVALID", `Cannot use ${quoted(this.#index, 400)}: ${why}`, {
        hint: "Repair or remove the file; until then no capability runs",
        cause: error,
      });
    }
  }

  /**
   * Reads a capability and compares it with the approved hash. Throws INTEGRITY_MISMATCH if its
   * file differs or is missing, and UNKNOWN_TOOL if no capability was approved under this name.
   * `registryCapability` is the file and the approved hash of a capability from a registry.
   */
  load(
    id: ToolId,
    registryCapability?: { readonly hash: string; readonly path: string },
  ): Capability {
    const approved = registryCapability?.hash ?? this.readApproved().get(id);
    if (approved === undefined) throw noCapability(id, this.readApproved());
    const path = registryCapability?.path ?? this.#path(approved);
    let why = "was changed";
    try {
      const capability = parseCapability(readJson(path));
      const hash = capabilityHash(capability);
      if (hash === approved) return capability;
    } catch (error) {
      why = `cannot be read: ${asPmlError(error).message}`;
    }
    throw new PmlError("INTEGRITY_MISMATCH", `Cannot run "${id}": its file ${why}`, {
      hint: `Look at ${quoted(path, 400)}; then save or import it again, or ` +
        `delete it with \`pml capability delete ${id}\``,
    });
  }

  /** Throws UNKNOWN_TOOL if no capability was approved under this name. */
  assertApproved(id: ToolId): void {
    if (!this.readApproved().has(id)) throw noCapability(id, this.readApproved());
  }

  /**
   * Saves a capability as approved. `shownHash` is the hash of the replaced capability that the
   * user saw; undefined for a new name. Throws APPROVAL_STALE if the current hash differs.
   */
  async save(
    id: ToolId,
    capability: Capability,
    { shownHash }: { readonly shownHash: string | undefined },
  ): Promise<void> {
    const hash = capabilityHash(capability);
    await this.#change(async (index) => {
      const refusal = index.get(id) !== shownHash
        ? "APPROVAL_STALE"
        : index.size >= CAPABILITIES_MAX && shownHash === undefined
        ? "OVERLOADED"
        : undefined;
      if (refusal !== undefined) throw savingError(refusal, id);
      index.set(id, hash);
      const { definitions } = capability;
      await writePrivate(this.#path(hash), { ...toFileJson(capability), definitions });
    });
  }

  /**
   * Renames a capability, or deletes it if there is no new name. Its approval stays valid. Throws
   * APPROVAL_STALE if its hash is not `shownHash`, the hash that the user saw.
   */
  async rename(
    from: ToolId,
    { to, shownHash }: { readonly to?: ToolId; readonly shownHash: string | undefined },
  ): Promise<void> {
    await this.#change((index) => {
      const hash = index.get(from);
      if (hash === undefined) throw noCapability(from, index);
      // guard: capability-renamed
      if (hash !== shownHash) throw savingError("APPROVAL_STALE", from);
      if (to !== undefined && index.has(to)) throw savingError("NAME_CONFLICT", to);
      index.delete(from);
      if (to !== undefined) index.set(to, hash);
    });
  }

  #path(hash: string): string {
    return join(this.#folder, `${hash}.json`);
  }

  async #change(change: (index: Map<ToolId, string>) => Promise<void> | void): Promise<void> {
    await withLock(`${this.#index}.lock`, async () => {
      await removeLeftovers(this.#index);
      const before = this.readApproved();
      const index = new Map(before);
      await change(index);
      const capabilities = Object.fromEntries([...index].map(([id, hash]) => [id, { hash }]));
      await writePrivate(this.#index, { version: 1, capabilities });
      const hashes = new Set(index.values());
      for (const hash of before.values()) {
        if (!hashes.has(hash)) await Deno.remove(this.#path(hash)).catch(unlessGone);
      }
    });
  }
}

/** Returns the error for the name of a capability that does not exist. */
function noCapability(id: string, saved: ReadonlyMap<string, unknown>): PmlError {
  const near = nearName(id, [...saved.keys()]);
  return new PmlError("UNKNOWN_TOOL", `Cannot find the capability ${quoted(id)}`, {
    hint: near === undefined
      ? saved.size > 0 && saved.size <= 5
        ? `The saved capabilities are ${[...saved.keys()].join(", ")}`
        : "List the saved capabilities with `pml capability list`"
      : `Did you mean ${quoted(near)}?`,
  });
}

/** The reason and the hint by error code. */
const REFUSALS = {
  APPROVAL_STALE: ["it changed after the user saw it", "List the capabilities, then try again"],
  NAME_CONFLICT: [
    "the name is already used",
    "Choose another name, or delete that capability first",
  ],
  OVERLOADED: [
    `${CAPABILITIES_MAX} capabilities are already saved`,
    "Delete some with `pml capability delete`",
  ],
} as const;

function savingError(code: keyof typeof REFUSALS, id: ToolId): PmlError {
  const [why, hint] = REFUSALS[code];
  return new PmlError(code, `Cannot save "${id}": ${why}`, { hint });
}

function parseIndex(json: unknown): Approved {
  const { version, capabilities } = objectOf(json);
  if (version !== 1 || !isObject(capabilities)) throw new TypeError("the version is not 1");
  return new Map(
    Object.entries(capabilities).map(([name, entry]) => {
      const { hash } = objectOf(entry);
      if (typeof hash !== "string" || !HASH.test(hash)) {
        throw new TypeError(`${quoted(name)} has no hash`);
      }
      return [capabilityId(name), hash];
    }),
  );
}

/** Reads a JSON file; undefined if it does not exist. */
function readJson(path: string): unknown {
  const plain = readPlain(path, FILE_MAX);
  return plain && parseJsonBytes(plain.bytes, parseExact);
}

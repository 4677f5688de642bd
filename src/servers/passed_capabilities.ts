/**
 * Stores in files which experimental capabilities and unknown extensions servers declared at their
 * last start. PML must declare them to a client, and cannot wait until it has started the servers.
 *
 * @module
 */

import { join } from "node:path";
import { sha256 } from "../core/hash.ts";
import { type JsonObject, objectOf, sortedJsonText, withoutUndefined } from "../core/json.ts";
import { pruneCache, readCache, removeIfPossible, writeCache } from "../io/cache_files.ts";
import { namesInFolder } from "../io/path_info.ts";
import { unknownExtensions } from "../protocol/extension_methods.ts";
import { safeTexts } from "../protocol/safe_text.ts";

/** A server, and the facts on which its declarations depend. */
export interface DeclaringServer {
  readonly name: string;
  /** The definition of the server, without the values of variables. */
  readonly definition: unknown;
  readonly workspace: string;
  /** Whether files may be written for the server; by default true. */
  readonly hasFiles?: boolean;
}

/** The maximum length of the declarations of one server as JSON, in characters. */
const LENGTH_MAX = 16_000;
/** The maximum number of files of one server, over all workspaces. */
const FILES_MAX = 64;

/** Reads and writes the declarations of servers. */
export class PassedCapabilities {
  readonly #folder: string;

  /** `home` is the PML home. */
  constructor(home: string) {
    this.#folder = join(home, "declared");
  }

  /** Stores the declared capabilities and extensions of a server that PML itself does not know. */
  note(server: DeclaringServer, { experimental, extensions }: JsonObject): void {
    if (server.hasFiles === false) return;
    const file = this.#fileOf(server);
    const before = readCache(file);
    const unknown = unknownExtensions(objectOf(extensions));
    const own = safeTexts(withoutUndefined({
      experimental: unlessEmpty(objectOf(experimental)),
      extensions: unlessEmpty(unknown),
    }));
    const isNone = Object.keys(own).length === 0 || JSON.stringify(own).length > LENGTH_MAX;
    if (isNone) return before === undefined ? undefined : removeIfPossible(file);
    if (sortedJsonText(objectOf(before)) === sortedJsonText(own)) return;
    try {
      writeCache(file, own);
      pruneCache(this.#folder, { like: file, most: FILES_MAX });
    } catch {
      // The next start of the server writes the file.
    }
  }

  /**
   * Returns the stored capabilities of servers, which PML declares to clients. Leaves out names
   * that several servers declare with different values.
   */
  of(servers: readonly DeclaringServer[]): JsonObject {
    // Computes hashes only for servers that may have a file: loading `node:crypto` takes as long as
    // the start of Deno.
    const names = this.#names();
    const all = servers.filter(({ name }) => names.some((one) => one.startsWith(`${name}-`)))
      .map((server) => objectOf(readCache(this.#fileOf(server))));
    return withoutUndefined({
      experimental: joinEqual(all.map(({ experimental }) => objectOf(experimental))),
      extensions: joinEqual(all.map(({ extensions }) => objectOf(extensions))),
    });
  }

  #names(): readonly string[] {
    try {
      return namesInFolder(this.#folder);
    } catch {
      // No server has declared anything yet.
      return [];
    }
  }

  #fileOf({ name, definition, workspace }: DeclaringServer): string {
    const key = sha256(JSON.stringify([name, definition, workspace])).slice(0, 32);
    return join(this.#folder, `${name}-${key}.json`);
  }
}

/** Returns an object that has members; undefined for an empty one. */
function unlessEmpty(object: JsonObject): JsonObject | undefined {
  return Object.keys(object).length > 0 ? object : undefined;
}

/**
 * Joins objects. Leaves out members with different values. Returns undefined if no member is left.
 */
function joinEqual(all: readonly JsonObject[]): JsonObject | undefined {
  const members = all.flatMap((object) => Object.entries(object));
  const same = members.filter(([name, value]) =>
    members.every(([otherName, other]) =>
      otherName !== name || sortedJsonText(other) === sortedJsonText(value)
    )
  );
  return same.length === 0 ? undefined : Object.fromEntries(same);
}

/**
 * The experimental capabilities and the unknown extensions that servers declared at their last start,
 * in files: PML greets a client before it starts the servers.
 *
 * @module
 */

import { join } from "node:path";
import { sha256 } from "../core/hash.ts";
import { defined, type JsonObject, objectOf, sorted } from "../core/json.ts";
import { drop, pruneCache, readCache, writeCache } from "../io/kept.ts";
import { namesInFolder } from "../io/place.ts";
import { unknownExtensions } from "../protocol/extension_methods.ts";
import { safeTexts } from "../protocol/safe_text.ts";

/** A server, and the facts that its declarations depend on. */
export interface DeclaringServer {
  readonly name: string;
  /** Its definition without the values of variables. */
  readonly definition: unknown;
  readonly workspace: string;
  /** Whether files may be written for it; by default true. */
  readonly isKept?: boolean;
}

/** The most characters of the declarations of one server, as JSON. */
const LENGTH_MAX = 16_000;
/** The most files of one server, over all workspaces. */
const FILES_MAX = 64;

/** Reads and writes the declarations of servers. */
export class PassedCapabilities {
  readonly #folder: string;

  /** Uses a folder in the PML home. */
  constructor(home: string) {
    this.#folder = join(home, "declared");
  }

  /** Keeps the part of the capabilities of a server that PML does not know. */
  note(server: DeclaringServer, { experimental, extensions }: JsonObject): void {
    if (server.isKept === false) return;
    const file = this.#fileOf(server);
    const before = readCache(file);
    const unknown = unknownExtensions(objectOf(extensions));
    const own = safeTexts(defined({
      experimental: filled(objectOf(experimental)),
      extensions: filled(unknown),
    }));
    const isNone = Object.keys(own).length === 0 || JSON.stringify(own).length > LENGTH_MAX;
    if (isNone) return before === undefined ? undefined : drop(file);
    if (sorted(objectOf(before)) === sorted(own)) return;
    try {
      writeCache(file, own);
      pruneCache(this.#folder, { like: file, most: FILES_MAX });
    } catch {
      // The next start writes it.
    }
  }

  /**
   * Returns the capabilities that PML declares for servers. A name that several servers declare with
   * different values belongs to none of them.
   */
  of(servers: readonly DeclaringServer[]): JsonObject {
    // The hash of a file's name loads `node:crypto`, which takes as long as an empty Deno: few servers
    // have a file.
    const names = this.#names();
    const all = servers.filter(({ name }) => names.some((one) => one.startsWith(`${name}-`)))
      .map((server) => objectOf(readCache(this.#fileOf(server))));
    return defined({
      experimental: joined(all.map(({ experimental }) => objectOf(experimental))),
      extensions: joined(all.map(({ extensions }) => objectOf(extensions))),
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
function filled(object: JsonObject): JsonObject | undefined {
  return Object.keys(object).length > 0 ? object : undefined;
}

/** Joins objects, without members that differ. Returns undefined if nothing is left. */
function joined(all: readonly JsonObject[]): JsonObject | undefined {
  const members = all.flatMap((one) => Object.entries(one));
  const same = members.filter(([name, value]) =>
    members.every(([other, one]) => other !== name || sorted(one) === sorted(value))
  );
  return same.length === 0 ? undefined : Object.fromEntries(same);
}

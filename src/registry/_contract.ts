/**
 * A registry that uses PML's own API.
 *
 * @module
 */

import { isObject, objectOf } from "../core/json.ts";
import { type ClientOptions, RegistryClient } from "./client.ts";
import { entryName, type Fqdn } from "./fqdn.ts";
import type { RegistrySource } from "./source.ts";

/** The options of a registry client. */
export interface ContractOptions extends ClientOptions {
  /** The time limit for an entry or a page, in milliseconds. */
  readonly lookMs?: number;
}

const MB = 1024 * 1024;
const MANIFEST_BYTES = MB;
const CODE_BYTES = 2 * MB;
const PAGE_BYTES = 4 * MB;
const LOOK_MS = 10_000;
const CODE_MS = 60_000;
const PAGE = 500;
const LONGEST_CURSOR = 1_000;
const HASH_TAG = /^"sha256-[0-9a-f]{64}"$/;

/** Returns the source for a registry's URL. Asks nothing yet. */
export function contractSource(url: string, options: ContractOptions): RegistrySource {
  const client = new RegistryClient(url, options);
  const { lookMs: ms = LOOK_MS } = options;
  const look = { type: "application/json", ms } as const;
  return {
    url,
    async manifest(name, { signal, etag }) {
      const path = `/${written(name)}`;
      const answered = await client.get(path, {
        ...look,
        maxBytes: MANIFEST_BYTES,
        signal,
        etag,
      });
      if (answered.kind !== "found") return answered;
      const json = client.json(answered.bytes);
      if (!isObject(json)) throw client.bad(`its entry of "${entryName(name)}" is no object`);
      return { ...answered, json: objectOf(json) };
    },
    async code({ fqdn, version }, { signal, onProgress }) {
      const answered = await client.get(`/${fqdn}@${encodeURIComponent(version)}`, {
        type: "application/typescript",
        maxBytes: CODE_BYTES,
        ms: CODE_MS,
        signal,
        onBytes: onProgress &&
          ((bytes) => onProgress({ ...bytes, message: `downloading ${fqdn} ${version}` })),
      });
      if (answered.kind !== "found") {
        throw client.bad(`it has no code of "${fqdn}" ${version}, which it offers`);
      }
      // PML compares the hash of the bytes later. The etag only confirms that the registry sends
      // the code of one hash.
      if (!HASH_TAG.test(answered.etag ?? "")) throw client.bad("its etag is no hash of the code");
      return answered.bytes;
    },
    async catalog({ signal, cursor }) {
      const query = new URLSearchParams({ include: "tools", limit: `${PAGE}` });
      if (cursor !== undefined) query.set("cursor", cursor);
      const answered = await client.get(`?${query}`, { ...look, maxBytes: PAGE_BYTES, signal });
      const page = answered.kind === "found" ? client.json(answered.bytes) : undefined;
      const { items, next_cursor: next = null } = objectOf(page);
      if (!Array.isArray(items)) throw client.bad("its catalog has no items");
      if (next !== null && (typeof next !== "string" || next.length > LONGEST_CURSOR)) {
        throw client.bad("the cursor of its catalog is no short text");
      }
      return { items, next: next ?? undefined };
    },
  };
}

function written(name: Fqdn): string {
  const { version } = name;
  return `${entryName(name)}${version === undefined ? "" : `@${encodeURIComponent(version)}`}`;
}

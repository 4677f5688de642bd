/**
 * A registry that uses PML's own API.
 *
 * @module
 */

import { isObject, objectOf } from "../core/json.ts";
import type { CodeManifest } from "../servers/manifest.ts";
import type { Progress } from "../protocol/call.ts";
import { RegistryClient, type RegistryClientOptions } from "./client.ts";
import { entryName, type Fqdn } from "./fqdn.ts";
import type { CatalogPage, Lookup, RegistryReader } from "./source.ts";

const MB = 1024 * 1024;
/** The maximum sizes of an entry, of code and of a page of the catalog. */
const MANIFEST_BYTES = MB;
const CODE_BYTES = 2 * MB;
const PAGE_BYTES = 4 * MB;
/** The time limits for an entry or a page, and for code. */
const LOOK_MS = 10_000;
const CODE_MS = 60_000;
/** The number of entries that a request for a page asks for. */
const PAGE = 500;
const LONGEST_CURSOR = 1_000;
const HASH_TAG = /^"sha256-[0-9a-f]{64}"$/;

/** The source of a registry with PML's own API. */
export class ContractSource implements RegistryReader {
  /** The URL as configured. */
  readonly url: string;
  readonly #client: RegistryClient;
  readonly #ms: number;

  /** Requests nothing yet. */
  constructor(url: string, options: RegistryClientOptions) {
    this.url = url;
    this.#client = new RegistryClient(url, options);
    this.#ms = options.lookMs ?? LOOK_MS;
  }

  /** Requests an entry. */
  async manifest(name: Fqdn, signal: AbortSignal, etag?: string): Promise<Lookup> {
    const client = this.#client;
    const options = { type: "application/json", maxBytes: MANIFEST_BYTES, ms: this.#ms } as const;
    const answered = await client.get(`/${pathOf(name)}`, { ...options, signal, etag });
    if (answered.kind !== "found") return answered;
    const json = client.json(answered.bytes);
    if (!isObject(json)) {
      throw client.badResponse(`its entry of "${entryName(name)}" is not an object`);
    }
    return { ...answered, json: objectOf(json) };
  }

  /** Returns the code of a module. */
  async code(
    { fqdn, version }: CodeManifest,
    signal: AbortSignal,
    onProgress?: (progress: Progress) => void,
  ): Promise<Uint8Array> {
    const client = this.#client;
    const answered = await client.get(`/${fqdn}@${encodeURIComponent(version)}`, {
      type: "application/typescript",
      maxBytes: CODE_BYTES,
      ms: CODE_MS,
      signal,
      onBytes: onProgress &&
        ((bytes) => onProgress({ ...bytes, message: `downloading ${fqdn} ${version}` })),
    });
    if (answered.kind !== "found") {
      throw client.badResponse(`it has no code of "${fqdn}" ${version}, which it offers`);
    }
    // PML compares the hash of the bytes later. The etag only has to be a hash of code, so that the
    // response is not another document.
    if (!HASH_TAG.test(answered.etag ?? "")) {
      throw client.badResponse("its etag is not a hash of the code");
    }
    return answered.bytes;
  }

  /** Returns a page of the catalog. */
  async catalog(signal: AbortSignal, cursor?: string): Promise<CatalogPage> {
    const client = this.#client;
    const query = new URLSearchParams({ include: "tools", limit: `${PAGE}` });
    if (cursor !== undefined) query.set("cursor", cursor);
    const options = { type: "application/json", maxBytes: PAGE_BYTES, ms: this.#ms } as const;
    const answered = await client.get(`?${query}`, { ...options, signal });
    const page = answered.kind === "found" ? client.json(answered.bytes) : undefined;
    const { items, next_cursor: next = null } = objectOf(page);
    if (!Array.isArray(items)) throw client.badResponse("its catalog has no items");
    if (next !== null && (typeof next !== "string" || next.length > LONGEST_CURSOR)) {
      throw client.badResponse("the cursor of its catalog is not a short text");
    }
    return { items, next: next ?? undefined };
  }
}

function pathOf(name: Fqdn): string {
  const { version } = name;
  return `${entryName(name)}${version === undefined ? "" : `@${encodeURIComponent(version)}`}`;
}

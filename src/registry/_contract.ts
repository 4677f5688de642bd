/**
 * A registry that uses PML's own API.
 *
 * @module
 */

import { isObject, objectOf } from "../core/json.ts";
import type { CodeManifest } from "../servers/manifest.ts";
import type { CodeRequest } from "./_downloads.ts";
import { RegistryClient, type RegistryClientOptions } from "./client.ts";
import { entryName, type Fqdn } from "./fqdn.ts";
import type { CatalogPage, LookOptions, Lookup, RegistryReader } from "./source.ts";

const MB = 1024 * 1024;
const MANIFEST_BYTES = MB;
const CODE_BYTES = 2 * MB;
const PAGE_BYTES = 4 * MB;
const LOOK_MS = 10_000;
const CODE_MS = 60_000;
const PAGE = 500;
const LONGEST_CURSOR = 1_000;
const HASH_TAG = /^"sha256-[0-9a-f]{64}"$/;

/** The source of a registry with PML's own API. */
export class ContractSource implements RegistryReader {
  /** The URL as configured. */
  readonly url: string;
  readonly #client: RegistryClient;
  readonly #ms: number;

  /** Takes the URL; requests nothing yet. */
  constructor(url: string, options: RegistryClientOptions) {
    this.url = url;
    this.#client = new RegistryClient(url, options);
    this.#ms = options.lookMs ?? LOOK_MS;
  }

  /** Requests an entry. */
  async manifest(name: Fqdn, { signal, etag }: LookOptions): Promise<Lookup> {
    const client = this.#client;
    const look = { type: "application/json", maxBytes: MANIFEST_BYTES, ms: this.#ms } as const;
    const answered = await client.get(`/${written(name)}`, { ...look, signal, etag });
    if (answered.kind !== "found") return answered;
    const json = client.json(answered.bytes);
    if (!isObject(json)) throw client.bad(`its entry of "${entryName(name)}" is not an object`);
    return { ...answered, json: objectOf(json) };
  }

  /** Returns the code of a module. */
  async code(
    { fqdn, version }: CodeManifest,
    { signal, onProgress }: LookOptions & Pick<CodeRequest, "onProgress">,
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
      throw client.bad(`it has no code of "${fqdn}" ${version}, which it offers`);
    }
    // PML compares the hash of the bytes later. The etag only confirms that the registry sends the
    // code of one hash.
    if (!HASH_TAG.test(answered.etag ?? "")) throw client.bad("its etag is not a hash of the code");
    return answered.bytes;
  }

  /** Returns a page of the catalog. */
  async catalog(
    { signal, cursor }: LookOptions & { readonly cursor?: string | undefined },
  ): Promise<CatalogPage> {
    const client = this.#client;
    const query = new URLSearchParams({ include: "tools", limit: `${PAGE}` });
    if (cursor !== undefined) query.set("cursor", cursor);
    const look = { type: "application/json", maxBytes: PAGE_BYTES, ms: this.#ms } as const;
    const answered = await client.get(`?${query}`, { ...look, signal });
    const page = answered.kind === "found" ? client.json(answered.bytes) : undefined;
    const { items, next_cursor: next = null } = objectOf(page);
    if (!Array.isArray(items)) throw client.bad("its catalog has no items");
    if (next !== null && (typeof next !== "string" || next.length > LONGEST_CURSOR)) {
      throw client.bad("the cursor of its catalog is not a short text");
    }
    return { items, next: next ?? undefined };
  }
}

function written(name: Fqdn): string {
  const { version } = name;
  return `${entryName(name)}${version === undefined ? "" : `@${encodeURIComponent(version)}`}`;
}

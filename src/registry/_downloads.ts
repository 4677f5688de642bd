/**
 * Downloads the code of modules once for all callers, and caches it if its hash matches its entry.
 *
 * @module
 */

import type { Progress } from "../protocol/call.ts";
import { asPmlError, PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import type { CodeManifest } from "../servers/manifest.ts";
import type { BackgroundRefresh } from "./_background.ts";
import type { CachedRegistry } from "./_cached_registry.ts";
import type { Cache } from "./cache.ts";
import { untilAborted } from "./client.ts";
import { integrityOf } from "../core/hash.ts";

/** The options of `Downloads.code()`. `registry` has the code. */
export interface CodeRequest {
  readonly registry: CachedRegistry | undefined;
  readonly signal: AbortSignal;
  readonly onProgress?: ((progress: Progress) => void) | undefined;
}

interface Download {
  readonly bytes: Promise<Uint8Array>;
  readonly listeners: Set<(progress: Progress) => void>;
}

/** Downloads and caches code. */
export class Downloads {
  readonly #cache: Cache;
  readonly #background: BackgroundRefresh;
  readonly #closing: AbortSignal;
  readonly #downloads = new Map<string, Download>();

  /** Creates an instance. `closing` aborts all downloads. */
  constructor(cache: Cache, background: BackgroundRefresh, closing: AbortSignal) {
    this.#cache = cache;
    this.#background = background;
    this.#closing = closing;
  }

  /** Returns the code of an entry. Throws INTEGRITY_MISMATCH if its hash differs from the entry. */
  async code(
    manifest: CodeManifest,
    { registry, signal, onProgress }: CodeRequest,
  ): Promise<Uint8Array> {
    const cached = this.#cache.code(manifest.integrity);
    if (cached !== undefined) return cached;
    const download = this.#downloads.get(manifest.integrity) ?? this.#begin(manifest, registry);
    if (onProgress !== undefined) download.listeners.add(onProgress);
    try {
      return await untilAborted(download.bytes, signal);
    } finally {
      if (onProgress !== undefined) download.listeners.delete(onProgress);
    }
  }

  #begin(manifest: CodeManifest, registry: CachedRegistry | undefined): Download {
    const { fqdn, integrity } = manifest;
    if (registry === undefined) {
      throw new PmlError("BUG", `Cannot load "${fqdn}": its registry is not configured`);
    }
    const listeners: Download["listeners"] = new Set();
    const onProgress = (progress: Progress) => listeners.forEach((listener) => listener(progress));
    const bytes = this.#fetch(manifest, { registry, onProgress }).finally(() =>
      this.#downloads.delete(integrity)
    );
    // All callers may have stopped waiting when the download fails.
    bytes.catch((error) => {
      // The code does not match its entry, so one of the two is outdated.
      if (asPmlError(error).code === "INTEGRITY_MISMATCH") {
        this.#background.refreshEntry(registry, fqdn, true);
      }
    });
    const download = { bytes, listeners };
    this.#downloads.set(integrity, download);
    return download;
  }

  async #fetch(
    manifest: CodeManifest,
    { registry, onProgress }: {
      readonly registry: CachedRegistry;
      readonly onProgress: (progress: Progress) => void;
    },
  ): Promise<Uint8Array> {
    const signal = this.#closing;
    return await registry.limitDuringOutage(async () => {
      const bytes = await registry.ask((source) => source.code(manifest, signal, onProgress));
      const integrity = integrityOf(bytes);
      const { fqdn, version, integrity: expected } = manifest;
      // guard: registry-code
      if (integrity !== expected) {
        const what = `${quoted(fqdn)} ${version} from ${quoted(registry.source.url, 200)}`;
        const why = `its code is ${integrity}, but its entry has ${expected}`;
        throw new PmlError("INTEGRITY_MISMATCH", `Cannot load ${what}: ${why}`, {
          hint: "Call again later, or report it to the registry's owner; no code ran",
        });
      }
      this.#cache.keepCode(bytes);
      return bytes;
    });
  }
}

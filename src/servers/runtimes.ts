/**
 * The runtimes of the server kinds, by the names in `kinds.ts`. The first server of a kind loads its
 * runtime.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import type { KindRuntime, LoadRuntime, ServerHost } from "./host.ts";

/** The loader of the runtime of each kind. */
export const RUNTIMES: Readonly<Record<string, LoadRuntime>> = {
  deno: async (host) => (await import("./module/runtime.ts")).load(host),
  stdio: async (host) => (await import("./stdio/runtime.ts")).load(host),
  http: async (host) => (await import("./http/runtime.ts")).load(host),
  cloud: async (host) => (await import("./cloud/runtime.ts")).load(host),
  capability: async (host) => (await import("./capability/runtime.ts")).load(host),
};

/** Loads and keeps runtimes. */
export class Runtimes {
  readonly #host: ServerHost;
  readonly #loading = new Map<string, Promise<void>>();
  readonly #loaded = new Map<string, KindRuntime>();

  /** Loads nothing yet. */
  constructor(host: ServerHost) {
    this.#host = host;
  }

  /** Loads the runtime of a kind once. Does nothing for a name that is not a kind. */
  async load(kind: string): Promise<void> {
    const load = RUNTIMES[kind];
    if (load === undefined || this.#loaded.has(kind)) return;
    const loading = this.#loading.get(kind) ?? this.#load(kind, load);
    this.#loading.set(kind, loading);
    await loading;
  }

  /** Returns whether the runtime of a kind was loaded. */
  has(kind: string): boolean {
    return this.#loaded.has(kind);
  }

  /** Returns the runtime of a kind, which must have been loaded. */
  of(kind: string): KindRuntime {
    const runtime = this.#loaded.get(kind);
    if (runtime !== undefined) return runtime;
    throw new PmlError("BUG", `Cannot open a server of the kind ${quoted(kind)}: it is not loaded`);
  }

  async #load(kind: string, load: LoadRuntime): Promise<void> {
    try {
      this.#loaded.set(kind, await load(this.#host));
    } finally {
      // The next server tries again after a failure.
      this.#loading.delete(kind);
    }
  }
}

/**
 * What registries say of servers now, for who compares it with what is pinned.
 *
 * @module
 */

import { asPmlError, PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import type { Found, Registries } from "../registry/registries.ts";

/** What looking needs. */
export interface NewerOptions {
  /** Returns the registries that are asked now. */
  readonly registries: () => Registries;
  readonly closing: AbortSignal;
  readonly warn: (message: string) => void;
}

/** How long a comparison with what is pinned waits for registries. */
const COMPARED_MS = 4_000;

/** Looks servers up anew, each once. */
export class Newer {
  readonly #options: NewerOptions;
  readonly #asked = new Map<string, Promise<Found | undefined>>();

  /** Takes the registries; asks nothing. */
  constructor(options: NewerOptions) {
    this.#options = options;
  }

  /** Returns what a registry has under a name now: what was shown is what is pinned then. */
  of(name: string): Promise<Found | undefined> {
    const asked = this.#asked.get(name) ?? this.#ask(name);
    this.#asked.set(name, asked);
    return asked;
  }

  /** Forgets everything: other registries are asked now. */
  forget(): void {
    this.#asked.clear();
  }

  /** Asks now; where that fails, what is kept is told of and given. */
  async #ask(name: string): Promise<Found | undefined> {
    const late = AbortSignal.timeout(COMPARED_MS);
    const signal = AbortSignal.any([this.#options.closing, late]);
    try {
      return await this.#options.registries().refresh(name, { signal });
    } catch (error) {
      if (this.#options.closing.aborted) throw error;
      const { code, message, hint } = asPmlError(error);
      const why = late.aborted ? `no answer in ${COMPARED_MS} ms` : message;
      const kept = this.#options.registries().kept(name);
      if (kept === undefined) {
        // That nothing differs cannot be said of what nobody knows.
        throw new PmlError(
          late.aborted ? "REGISTRY_OFFLINE" : code,
          `Cannot compare ${quoted(name)} with what is pinned: ${why}`,
          { hint: hint ?? "Try again when its registry can be reached", cause: error },
        );
      }
      this.#options.warn(
        `Compared ${quoted(name)} with what was known of it, as it cannot be asked about: ${why}`,
      );
      return kept;
    }
  }
}

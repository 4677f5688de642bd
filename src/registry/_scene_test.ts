/** Registries with a separate home, and the warnings and changes that they reported. */

import assert from "node:assert/strict";
import { PmlError } from "../core/errors.ts";
import { ContractSource } from "./_contract.ts";
import type { PinnedEntry, RegistryUser } from "./_cached_registry.ts";
import { type Folder, plainFetch, type ScriptedRegistry } from "./_scripted_test.ts";
import { Cache } from "./cache.ts";
import { Registries, type RegistryTimes } from "./registries.ts";

/** A signal that never aborts. */
export const never = { signal: new AbortController().signal };

/** A user with pins, and the warnings and changes that were reported. */
export class FakeUser implements RegistryUser {
  readonly warned: string[] = [];
  readonly changed: string[] = [];
  readonly closing: AbortSignal;
  readonly #pins: Readonly<Record<string, PinnedEntry>>;
  readonly #own: readonly string[];

  constructor(
    closing: AbortSignal,
    pins: Readonly<Record<string, PinnedEntry>> = {},
    own: readonly string[] = [],
  ) {
    this.closing = closing;
    this.#pins = pins;
    this.#own = own;
  }

  get log(): this {
    return this;
  }

  warn(message: string): void {
    this.warned.push(message);
  }

  isPrivate(server: string): boolean {
    return this.#own.includes(server);
  }

  pinOf(name: string): PinnedEntry | undefined {
    return this.#pins[name];
  }

  allowedHosts(): readonly string[] {
    return [];
  }

  entryChanged(name: string): void {
    this.changed.push(name);
  }
}

/** Registries with a home, and the warnings and changes they reported. */
export class Scene {
  readonly warned: readonly string[];
  readonly changed: readonly string[];
  fetched = 0;
  readonly registries: Registries;

  constructor(
    home: Folder,
    places: readonly (ScriptedRegistry | { url: string })[],
    more: RegistryTimes & {
      readonly publicKey?: string;
      readonly lookMs?: number;
      readonly isQuiet?: boolean;
      readonly pins?: Readonly<Record<string, PinnedEntry>>;
      readonly own?: readonly string[];
    } = {},
  ) {
    const { publicKey, lookMs = 20_000, isQuiet = false, pins, own, ...times } = more;
    const user = new FakeUser(never.signal, pins, own);
    this.warned = user.warned;
    this.changed = user.changed;
    this.registries = new Registries(
      places.map(({ url }) => ({
        source: new ContractSource(url, {
          fetch: (...asked) => {
            this.fetched++;
            return plainFetch(...asked);
          },
          retryMs: 1,
          lookMs,
        }),
        publicKey,
        isQuiet,
      })),
      user,
      { cache: new Cache(home.path, user.log), ...times },
    );
  }

  async version(name: string): Promise<string | undefined> {
    return (await this.registries.find(name, never))?.manifest.version;
  }
}

/** Asserts that a promise rejects with a code. */
export async function fails(
  work: Promise<unknown> | (() => unknown),
  expected: string,
  says?: RegExp,
) {
  await assert.rejects(
    (async () => await (typeof work === "function" ? work() : work))(),
    (error) => {
      assert.ok(error instanceof PmlError, `${error}`);
      assert.equal(error.code, expected, error.message);
      if (says !== undefined) assert.match(error.message, says);
      return true;
    },
  );
}

/** Waits until a condition is true. */
export async function until(condition: () => boolean): Promise<void> {
  for (const since = performance.now(); !condition();) {
    assert.ok(performance.now() - since < 5_000, `never: ${condition}`);
    await new Promise((go) => setTimeout(go, 2));
  }
}

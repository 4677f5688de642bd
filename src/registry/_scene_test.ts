/** Registries with a home of their own, and the warnings and changes they reported. */

import assert from "node:assert/strict";
import { PmlError } from "../core/errors.ts";
import { contractSource } from "./_contract.ts";
import { type Folder, plainFetch, type ScriptedRegistry } from "./_scripted_test.ts";
import { Cache } from "./cache.ts";
import { Registries, type RegistriesOptions } from "./registries.ts";

/** A signal that never aborts. */
export const never = { signal: new AbortController().signal };

/** Registries with a home, and the warnings and changes they reported. */
export class Scene {
  readonly warned: string[] = [];
  readonly changed: string[] = [];
  catalogs = 0;
  fetched = 0;
  readonly registries: Registries;

  constructor(
    home: Folder,
    places: readonly (ScriptedRegistry | { url: string })[],
    more: Partial<RegistriesOptions> & {
      readonly publicKey?: string;
      readonly lookMs?: number;
      readonly isQuiet?: boolean;
    } = {},
  ) {
    const { publicKey, lookMs = 20_000, isQuiet = false, ...options } = more;
    const warn = (message: string) => this.warned.push(message);
    this.registries = new Registries({
      places: places.map(({ url }) => ({
        source: contractSource(url, {
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
      cache: new Cache(home.path, { warn }),
      isPrivate: () => false,
      pinned: () => undefined,
      onChange: (name) => this.changed.push(name),
      onCatalog: () => this.catalogs++,
      warn,
      closing: never.signal,
      ...options,
    });
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

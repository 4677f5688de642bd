/**
 * The keys that an identity may use: the user's keys, or none.
 *
 * @module
 */

import { join } from "node:path";
import type { KeysOptions } from "../config/keys.ts";
import type { Policy } from "./policy.ts";

const NO_KEYS = { get: () => undefined, apiKey: undefined };

/** Returns the key options of an identity: without any source if it may not use the user's keys. */
export function keysFor(policy: Policy, own: KeysOptions): KeysOptions {
  const isPoor = () => policy.now.config.narrowing?.identity?.keys === false;
  return {
    ...own,
    environment: () => {
      const environment = own.environment();
      return isPoor() ? { ...NO_KEYS, home: join(environment.home, "no keys") } : environment;
    },
    trusted: () => isPoor() ? undefined : own.trusted(),
    isWithheld: isPoor,
  };
}

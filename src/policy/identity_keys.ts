/**
 * The keys of an identity: those of the person, or none.
 *
 * @module
 */

import { join } from "node:path";
import type { KeysOptions } from "../config/keys.ts";
import type { Policy } from "./policy.ts";

const NO_KEYS = { get: () => undefined, apiKey: undefined };

/** Returns where an identity's keys are looked up: nowhere, if it may not use the person's. */
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

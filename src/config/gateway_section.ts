/**
 * Writes the settings of the gateway in the form of a file.
 *
 * @module
 */

import { isObject } from "../core/json.ts";
import type { GatewayOverrides } from "./gateway_options.ts";
import { limitKey } from "./limits.ts";

/** Returns options with the keys of configuration files. Patterns become texts. */
export function gatewaySection(
  { exposure, ...options }: GatewayOverrides,
): Record<string, unknown> {
  return withFileKeys({ toolsExposure: exposure, ...options });
}

function withFileKeys(options: object): Record<string, unknown> {
  const entries = Object.entries(options).map(([name, value]) => {
    if (isObject(value)) return [limitKey(name), withFileKeys(value)];
    return [limitKey(name), Array.isArray(value) ? value.map((item) => item.text ?? item) : value];
  });
  return Object.fromEntries(entries);
}

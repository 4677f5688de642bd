/**
 * Names of registry entries: `name` or `namespace:action`, optionally with `@version` or `@tag`.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import { isUsableServerName } from "../core/tool_id.ts";

/** The parts of a registry name. */
export interface Fqdn {
  /** The name of the server, or the namespace of a capability. */
  readonly name: string;
  /** The action of a capability (`read_json` in `fs:read_json`). */
  readonly action: string | undefined;
  /** The text after the `@`: a version or a tag. */
  readonly version: string | undefined;
}

// An action is also a part of a path, so fewer characters are allowed than in the name of a tool.
const ACTION = /^[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?$/;
const VERSION = /^[A-Za-z0-9](?:[A-Za-z0-9.+_-]{0,62}[A-Za-z0-9])?$/;
/** Windows opens a device for such a name in any folder and with any extension. */
const DEVICE = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/;

/**
 * Parses a registry name.
 *
 * @throws {PmlError} NAME_INVALID if it is not valid, before any request or write.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { parseFqdn } from "@casys/pml/registry";
 *
 * const { name, action, version } = parseFqdn("fs:read_json@1.2.0");
 * assert.deepEqual([name, action, version], ["fs", "read_json", "1.2.0"]);
 * assert.throws(() => parseFqdn("../etc"), { code: "NAME_INVALID" });
 * ```
 */
export function parseFqdn(text: string): Fqdn {
  const fqdn = fqdnOf(text);
  if (fqdn !== undefined) return fqdn;
  throw new PmlError("NAME_INVALID", `Cannot look up ${quoted(text)}: it is not a registry name`, {
    hint: 'Write "name", "namespace:action" or either with "@version", in lower case',
  });
}

/**
 * Parses a registry name; undefined if it is not valid.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { fqdnOf } from "@casys/pml/registry";
 *
 * assert.equal(fqdnOf("serena@latest")?.version, "latest");
 * assert.equal(fqdnOf("Serena"), undefined);
 * ```
 */
export function fqdnOf(text: string): Fqdn | undefined {
  const atSign = text.indexOf("@");
  const version = atSign < 0 ? undefined : text.slice(atSign + 1);
  const nameText = atSign < 0 ? text : text.slice(0, atSign);
  const [name = "", action, ...rest] = nameText.split(":");
  const isValid = isUsableServerName(name) && !DEVICE.test(name) && rest.length === 0 &&
    (action === undefined || ACTION.test(action) && !action.includes("..")) &&
    (version === undefined || isVersion(version));
  return isValid ? { name, action, version } : undefined;
}

/**
 * Returns whether a text is a valid version or tag of an entry.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { isVersion } from "@casys/pml/registry";
 *
 * assert.equal(isVersion("1.2.0-beta.1"), true);
 * assert.equal(isVersion("../1"), false);
 * ```
 */
export function isVersion(text: string): boolean {
  return VERSION.test(text) && !text.includes("..");
}

/**
 * Returns a registry name without its version.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { entryName, parseFqdn } from "@casys/pml/registry";
 *
 * assert.equal(entryName(parseFqdn("fs:read_json@1.2.0")), "fs:read_json");
 * ```
 */
export function entryName({ name, action }: Fqdn): string {
  return action === undefined ? name : `${name}:${action}`;
}

/**
 * Names of registry entries: `name` or `namespace:action`, optionally `@version` or `@tag`.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import { isServerName, isToolName } from "../core/tool_id.ts";

/** A registry name, taken apart. */
export interface Fqdn {
  /** The server's name, or the namespace of a capability. */
  readonly name: string;
  /** The action of a capability (`read_json` of `fs:read_json`). */
  readonly action: string | undefined;
  /** What follows the `@`: a version or a tag. */
  readonly version: string | undefined;
}

const VERSION = /^[A-Za-z0-9](?:[A-Za-z0-9.+-]{0,62}[A-Za-z0-9])?$/;

/** Reads a registry name, or throws NAME_INVALID before anything is asked or written. */
export function parseFqdn(text: string): Fqdn {
  const at = text.indexOf("@");
  const version = at < 0 ? undefined : text.slice(at + 1);
  const [name = "", action, ...rest] = (at < 0 ? text : text.slice(0, at)).split(":");
  const valid = isServerName(name) && rest.length === 0 &&
    (action === undefined || isToolName(action)) &&
    (version === undefined || VERSION.test(version));
  if (valid) return { name, action, version };
  throw new PmlError("NAME_INVALID", `Cannot look up ${quoted(text)}: it is no registry name`, {
    hint: 'Write "name", "namespace:action" or either with "@version", in lower case',
  });
}

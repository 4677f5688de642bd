/**
 * Fills in `${NAME}` and `${NAME:-default}` in the values that a definition gives to its server.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";

const REFERENCE = /\$\{(\w+)(?::-([^}]*))?\}/g;

/**
 * Gives the values filled in, and those that came from the environment, which are secrets. All names
 * that are missing are told at once.
 */
export function expanded(
  values: Readonly<Record<string, string>>,
  { get, server, what }: {
    readonly get: (name: string) => string | undefined;
    readonly server: string;
    readonly what: "args" | "env" | "headers" | "url";
  },
): { readonly values: Readonly<Record<string, string>>; readonly secrets: readonly string[] } {
  const missing = new Map<string, string>();
  const secrets: string[] = [];
  const filled = Object.entries(values).map(([key, value]) => [
    key,
    value.replace(REFERENCE, (_, name: string, otherwise?: string) => {
      const found = get(name);
      // What still holds a reference was filled in by nobody.
      const isSet = found !== undefined && found !== "" && !found.includes("${");
      if (isSet) secrets.push(found);
      else if (otherwise === undefined) missing.set(name, key);
      return isSet ? found : otherwise ?? "";
    }),
  ]);
  if (missing.size === 0) return { values: Object.fromEntries(filled), secrets };
  const names = [...missing.keys()].join(", ");
  const at = [...missing.values()].map((key) => `${what}.${key}`).join(", ");
  throw new PmlError("KEY_MISSING", `Cannot start ${quoted(server)}: it requires ${names}`, {
    hint: `Set it in the environment of PML, or write \${NAME:-default} at ${at} in .pml.json`,
    detail: { missing: [...missing.keys()] },
  });
}

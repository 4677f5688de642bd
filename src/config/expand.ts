/**
 * Replaces `${NAME}` and `${NAME:-default}` in the values of a definition.
 *
 * @module
 */

import { keyHint, PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";

/** The values of a definition as they were written, by the kind of place where they stand. */
export type DefinitionTexts = Readonly<
  Partial<
    Record<
      "args" | "env" | "headers" | "oauth" | "url" | "arguments",
      Readonly<Record<string, string>>
    >
  >
>;

/** A variable that a definition uses. */
export interface VariableReference {
  readonly name: string;
  /** The default value; undefined if the variable must be set. */
  readonly otherwise: string | undefined;
  /** The place that uses it, such as `env.TOKEN`. */
  readonly at: string;
}

// `${dataFolder}` is no variable: PML replaces it itself.
const REFERENCE = /\$\{(?!dataFolder\})(\w+)(?::-([^}]*))?\}/g;
/** The longest value of a variable. No key is as long, and command lines have similar limits. */
const LONGEST = 32_768;
/** The characters that a line of an HTTP request may contain. */
const LINE = /^[\t\x20-\x7e]*$/;

/** Returns every variable that a definition uses. */
export function referencesIn(given: DefinitionTexts): readonly VariableReference[] {
  return Object.entries(given).flatMap(([kind, values]) =>
    Object.entries(values).flatMap(([key, value]) =>
      [...value.matchAll(REFERENCE)].map(([, name = "", otherwise]) => ({
        name,
        otherwise,
        at: `${kind}.${key}`,
      }))
    )
  );
}

/**
 * Returns the values with all variables replaced. Throws KEY_MISSING with the names of all missing
 * variables. Errors contain names of variables and never values.
 */
export function expanded<T extends DefinitionTexts>(
  given: T,
  { get, server }: {
    readonly get: (name: string) => string | undefined;
    readonly server: string;
  },
): T {
  const missing = referencesIn(given).filter(({ name, otherwise }) =>
    otherwise === undefined && get(name) === undefined
  );
  if (missing.length > 0) throw missingError(server, missing);
  const fill = (kind: string, value: string) =>
    value.replace(REFERENCE, (_, name: string, otherwise = "") => {
      const found = get(name);
      if (found !== undefined) mustFit(found, { name, kind, server });
      return found ?? otherwise;
    });
  const filled = Object.entries(given).map(([kind, values]) => [
    kind,
    Object.fromEntries(Object.entries(values).map(([key, value]) => [key, fill(kind, value)])),
  ]);
  return Object.fromEntries(filled); // the same keys as before
}

/**
 * Throws if a value cannot be sent. An environment variable may have several lines; a header and a
 * URL may not.
 */
function mustFit(
  value: string,
  at: { readonly name: string; readonly kind: string; readonly server: string },
): void {
  const { name, kind, server } = at;
  const isLine = kind === "headers" || kind === "url";
  const why = value.length > LONGEST
    ? `is longer than ${LONGEST} characters`
    : value.includes("\0") || (isLine && !LINE.test(value))
    ? `holds a line end or another character that cannot be sent`
    : undefined;
  if (why === undefined) return;
  throw new PmlError("CONFIG_INVALID", `Cannot start ${quoted(server)}: ${name} ${why}`, {
    hint: `Look at the value of ${name} where it is set`,
  });
}

function missingError(server: string, missing: readonly VariableReference[]): PmlError {
  const names = [...new Set(missing.map(({ name }) => name))];
  const places = missing.map(({ at }) => at).join(", ");
  const named = names.filter((name) => !name.startsWith("PML_"));
  const own = named.length < names.length ? "; no server gets PML_ variables" : "";
  const said = `Cannot start ${quoted(server)}: it requires ${names.join(", ")}`;
  return new PmlError("KEY_MISSING", said, {
    hint: `${keyHint(named[0])}, or write \${NAME:-default} at ${places}${own}`,
    detail: { missing: names },
  });
}

/**
 * Replaces `${NAME}` and `${NAME:-default}` in the values of a definition.
 *
 * @module
 */

import { keyHint, PmlError } from "../core/errors.ts";
import { type Folders, OWN_VARIABLES } from "../core/folder_variables.ts";
import { quoted } from "../core/json.ts";
import type { DefinitionTexts } from "../servers/kind.ts";

/** A variable that a definition uses. */
export interface VariableReference {
  readonly name: string;
  /** The default value; undefined if the variable must be set. */
  readonly defaultValue: string | undefined;
  /** The place that uses it, such as `env.TOKEN`. */
  readonly at: string;
}

const REFERENCE = new RegExp(`\\$\\{(?!${OWN_VARIABLES}\\})(\\w+)(?::-([^}]*))?\\}`, "g");
/** Also matches the folder variables, except for the folder of a server's data: it comes later. */
const REPLACED = /\$\{(?!dataFolder\})(\w+)(?::-([^}]*))?\}/g;
/** The longest value of a variable. Keys are shorter, and command lines have similar limits. */
const LONGEST = 32_768;
/** The characters that a line of an HTTP request may contain. */
const LINE = /^[\t\x20-\x7e]*$/;
/** The kinds of places whose values are sent in requests. A `${name}` there is never plain text. */
const REQUEST_PLACES = ["headers", "oauth", "url"];
/** The kinds of places in which a variable has the value from the definition's own `env`. */
const PROGRAM_PLACES = ["command", "cwd", "env"];

/**
 * Returns every variable that a definition uses, without the names that its own `env` defines. In
 * `args`, only the program replaces such a name: PML would show a key in every list of processes.
 */
export function referencesIn(texts: DefinitionTexts): readonly VariableReference[] {
  const { env = {} } = texts;
  return Object.entries(texts).flatMap(([kind, values]) =>
    Object.entries(values).flatMap(([key, value]) =>
      [...value.matchAll(REFERENCE)]
        .filter(([, name = ""]) => !isOfEnv(name, { env, kind, key }))
        .map(([, name = "", defaultValue]) => ({ name, defaultValue, at: `${kind}.${key}` }))
    )
  );
}

/**
 * Returns whether a server cannot start without a variable. An unset name with a lower-case letter
 * counts as text, such as `Hello ${name}`, except in values that are sent in requests.
 */
export function isRequired({ name, defaultValue, at }: VariableReference): boolean {
  const [kind = ""] = at.split(".", 1);
  return defaultValue === undefined && (REQUEST_PLACES.includes(kind) || !/[a-z]/.test(name));
}

/**
 * Returns the values with all variables replaced. Throws KEY_MISSING with the names of all missing
 * variables. Errors contain names of variables and never values.
 */
export function expand<T extends DefinitionTexts>(
  texts: T,
  { get, server, folders }: {
    readonly get: (name: string) => string | undefined;
    readonly server: string;
    readonly folders?: Folders | undefined;
  },
): T {
  const missing = referencesIn(texts).filter((reference) =>
    isRequired(reference) && get(reference.name) === undefined
  );
  if (missing.length > 0) throw missingError(server, missing);
  const { env = {} } = texts;
  const valueOf = (name: string, kind: string) => {
    const value = folders && Object.hasOwn(folders, name)
      ? folders[name as keyof Folders]
      : get(name);
    if (value !== undefined) assertSendable(value, { name, kind, server });
    return value;
  };
  /** `outerNames` are the variables of `env` that contain this value. They end a cycle. */
  const fill = (value: string, kind: string, outerNames: readonly string[]): string =>
    value.replace(REPLACED, (text, name: string, defaultValue?: string) => {
      const own = env[name];
      if (own === undefined || outerNames.includes(name)) {
        return valueOf(name, kind) ?? defaultValue ?? text;
      }
      if (kind === "args") return text;
      if (PROGRAM_PLACES.includes(kind)) return fill(own, kind, [...outerNames, name]);
      return valueOf(name, kind) ?? defaultValue ?? text;
    });
  const filled = Object.entries(texts).map(([kind, values]) => [
    kind,
    Object.fromEntries(
      Object.entries(values).map(([key, value]) => [
        key,
        fill(value, kind, kind === "env" ? [key] : []),
      ]),
    ),
  ]);
  return Object.fromEntries(filled); // the same keys as before
}

/** Returns whether a name at a place has its value from the definition's own `env`. */
function isOfEnv(
  name: string,
  { env, kind, key }: {
    readonly env: Readonly<Record<string, string>>;
    readonly kind: string;
    readonly key: string;
  },
): boolean {
  const isOwn = Object.hasOwn(env, name);
  return isOwn &&
    (kind === "args" || PROGRAM_PLACES.includes(kind) && !(kind === "env" && key === name));
}

/**
 * Throws if a value cannot be sent. An environment variable may have several lines; a header and a
 * URL may not.
 */
function assertSendable(
  value: string,
  at: { readonly name: string; readonly kind: string; readonly server: string },
): void {
  const { name, kind, server } = at;
  const isLine = kind === "headers" || kind === "url";
  const why = value.length > LONGEST
    ? `is longer than ${LONGEST} characters`
    : value.includes("\0") || (isLine && !LINE.test(value))
    ? `contains a line end or another character that cannot be sent`
    : undefined;
  if (why === undefined) return;
  throw new PmlError("CONFIG_INVALID", `Cannot start ${quoted(server)}: ${name} ${why}`, {
    hint: `Correct the value of ${name} where it is set`,
  });
}

function missingError(server: string, missing: readonly VariableReference[]): PmlError {
  const names = [...new Set(missing.map(({ name }) => name))];
  const places = missing.map(({ at }) => at).join(", ");
  const settableNames = names.filter((name) => !name.startsWith("PML_"));
  const why = settableNames.length < names.length ? "; no server gets PML_ variables" : "";
  const message = `Cannot start ${quoted(server)}: it requires ${names.join(", ")}`;
  return new PmlError("KEY_MISSING", message, {
    hint: `${
      keyHint(settableNames[0])
    }, or write a default value, as in \${NAME:-value}, at ${places}${why}`,
    detail: { missing: names },
  });
}

/**
 * Compares the lists and results of a server without PML and through PML.
 *
 * @module
 */

import { type Json, type ListName, LISTS } from "./connection.ts";

/** Two different values of one entry or call. */
export interface Difference {
  /** The entry or call: `tools: NAME` or `call TOOL`, with `DENIED` if a grant is missing. */
  readonly what: string;
  readonly direct: string;
  readonly through: string;
}

/** The suffix for a call that failed because an access was denied. */
export const DENIED = " (denied)";
const DENIES = /Requires \w+ access to|PML confines this server|getaddrinfo EPERM/;

/** Returns the entries of one server in a list of PML, with the names that the server uses. */
export function entriesOf(
  list: readonly Json[],
  { server, name }: { readonly server: string; readonly name: ListName },
): readonly Json[] {
  const key = LISTS[name];
  const prefix = key === "name" ? `${server}__` : `pml://${server}/`;
  return list.filter((entry) => String(entry[key]).startsWith(prefix))
    // Overwriting a key keeps its position, so that the JSON texts stay comparable.
    .map((entry) => ({ ...entry, [key]: String(entry[key]).slice(prefix.length) }));
}

/** Returns the differences between two lists, byte for byte. Ignores the order of entries. */
export function differencesOf(name: ListName, { direct, through, ignored }: {
  readonly direct: readonly Json[];
  readonly through: readonly Json[];
  /** Keys that do not exist in the other revision. */
  readonly ignored: readonly string[];
}): readonly Difference[] {
  const [directTexts, throughTexts] = [direct, through].map((list) =>
    new Map(list.map((entry) => [String(entry[LISTS[name]]), textOf(entry, ignored)]))
  );
  if (directTexts === undefined || throughTexts === undefined) return [];
  return [...new Set([...directTexts.keys(), ...throughTexts.keys()])].sort().flatMap((id) => {
    const pair = {
      direct: directTexts.get(id) ?? "(missing)",
      through: throughTexts.get(id) ?? "(missing)",
    };
    return pair.direct === pair.through ? [] : [{ what: `${name}: ${id}`, ...pair }];
  });
}

/** Returns a list with the difference between two results of a call; empty if they are equal. */
export function resultDifference(tool: string, { direct, through, server, varies }: {
  readonly direct: Json;
  readonly through: Json;
  readonly server: string;
  /** Whether each call has a different result; then only keys and types are compared. */
  readonly varies: boolean;
}): readonly Difference[] {
  if (typeof direct.error === "string") return errorDifference(tool, { direct, through });
  const text = (value: Json) => {
    // The newest revision adds the name of the server to each result.
    const { _meta, resultType: _, ...rest } = value;
    return JSON.stringify(varies ? formOf(rest) : rest).replaceAll(`pml://${server}/`, "");
  };
  const pair = { direct: text(direct), through: text(through) };
  return pair.direct === pair.through ? [] : [{ what: callOf(tool, through), ...pair }];
}

function callOf(tool: string, through: Json): string {
  return `call ${tool}${DENIES.test(JSON.stringify(through)) ? DENIED : ""}`;
}

/** Returns a difference unless PML returns a JSON-RPC error as an error with the same text. */
function errorDifference(
  tool: string,
  { direct, through }: { readonly direct: Json; readonly through: Json },
): readonly Difference[] {
  const [directError, throughText] = [direct.error, through].map((value) => JSON.stringify(value));
  if (directError === undefined || throughText === undefined) return [];
  const isError = through.isError === true || through.error !== undefined;
  if (isError && throughText.includes(directError.slice(1, -1))) return [];
  return [{ what: callOf(tool, through), direct: directError, through: throughText }];
}

function textOf(entry: Json, ignored: readonly string[]): string {
  return JSON.stringify(
    Object.fromEntries(Object.entries(entry).filter(([key]) => !ignored.includes(key))),
  );
}

/** Replaces values by their types. Keeps keys and booleans. */
function formOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(formOf);
  if (typeof value === "boolean") return value;
  if (value === null || typeof value !== "object") return typeof value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, formOf(member)]));
}

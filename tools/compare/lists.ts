/**
 * Compares the lists and answers of a server, directly and through PML.
 *
 * @module
 */

import { type Json, type ListName, LISTS } from "./connection.ts";

/** Two values of the same thing that are not the same. */
export interface Difference {
  /** What differs: `tools: NAME` or `call TOOL`, with DENIED where a grant lacks. */
  readonly what: string;
  readonly direct: string;
  readonly through: string;
}

/** The suffix of a difference that has its reason in a denied access. */
export const DENIED = " (denied)";
const DENIES = /Requires \w+ access to|PML confines this server|getaddrinfo EPERM/;

/** Returns the entries of one server in a list of PML, under the names that the server gave. */
export function entriesOf(
  list: readonly Json[],
  { server, name }: { readonly server: string; readonly name: ListName },
): readonly Json[] {
  const key = LISTS[name];
  const prefix = key === "name" ? `${server}__` : `pml://${server}/`;
  return list.filter((entry) => String(entry[key]).startsWith(prefix))
    // A key that is there keeps its place in the order of keys.
    .map((entry) => ({ ...entry, [key]: String(entry[key]).slice(prefix.length) }));
}

/** Returns what differs between two lists, byte for byte; the order of entries does not count. */
export function differencesOf(name: ListName, { direct, through, ignored }: {
  readonly direct: readonly Json[];
  readonly through: readonly Json[];
  /** Keys that the other revision has no word for. */
  readonly ignored: readonly string[];
}): readonly Difference[] {
  const [one, other] = [direct, through].map((list) =>
    new Map(list.map((entry) => [String(entry[LISTS[name]]), textOf(entry, ignored)]))
  );
  if (one === undefined || other === undefined) return [];
  return [...new Set([...one.keys(), ...other.keys()])].sort().flatMap((id) => {
    const pair = { direct: one.get(id) ?? "(missing)", through: other.get(id) ?? "(missing)" };
    return pair.direct === pair.through ? [] : [{ what: `${name}: ${id}`, ...pair }];
  });
}

/** Returns what differs between two results of a call. */
export function resultDifference(tool: string, { direct, through, server, varies }: {
  readonly direct: Json;
  readonly through: Json;
  readonly server: string;
  /** Whether the result differs from call to call: then its form alone is compared. */
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

/** Returns a difference if an error of the protocol has become a result or another error. */
function errorDifference(
  tool: string,
  { direct, through }: { readonly direct: Json; readonly through: Json },
): readonly Difference[] {
  const [own, told] = [direct.error, through].map((value) => JSON.stringify(value));
  if (own === undefined || told === undefined) return [];
  const isError = through.isError === true || through.error !== undefined;
  if (isError && told.includes(own.slice(1, -1))) return [];
  return [{ what: callOf(tool, through), direct: own, through: told }];
}

function textOf(entry: Json, ignored: readonly string[]): string {
  return JSON.stringify(
    Object.fromEntries(Object.entries(entry).filter(([key]) => !ignored.includes(key))),
  );
}

/** Returns the keys and the types of values; booleans keep their value. */
function formOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(formOf);
  if (typeof value === "boolean") return value;
  if (value === null || typeof value !== "object") return typeof value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, formOf(one)]));
}

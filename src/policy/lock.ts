/**
 * Reads and writes `pml.lock`, which pins servers and their tools. It is read strictly, written in
 * canonical form, and compared by meaning.
 *
 * @module
 */

import type { Pinned } from "./server_identity.ts";
import { PmlError, shownPlace } from "../core/errors.ts";
import { parseJson } from "../core/parse_json.ts";
import type { Manifest } from "../servers/manifest.ts";
import {
  canonicalJson,
  isObject,
  type Json,
  type JsonObject,
  objectOf,
  quoted,
  visible,
} from "../core/json.ts";
import { INSTRUCTIONS } from "../protocol/lists.ts";
import { isSkillPin } from "../protocol/skills.ts";
import { NO_PERMISSIONS } from "../protocol/tool.ts";
import { isServerName, isToolName } from "../core/tool_id.ts";
import { kindOf, manifestKindOf, pinnedKinds } from "../servers/kinds.ts";
import { isIntegrity } from "./integrity.ts";

/**
 * The entry of one server in the lock: its pinned facts, and the hashes of its tools' definitions
 * by name.
 */
export interface LockEntry extends Pinned {
  readonly tools: Readonly<Record<string, string>>;
}

/** The entries of a lock, by server. */
export type LockEntries = Readonly<Record<string, LockEntry>>;

/** The largest size of a lock, in bytes. */
export const LOCK_MAX = 4_000_000;

/** What values a key may have: the words of the error message, and the check. */
interface LockKind {
  readonly wanted: string;
  readonly is: (value: unknown) => boolean;
}

const TEXT: LockKind = { wanted: "a text", is: (value) => typeof value === "string" };
const HASH: LockKind = { wanted: "sha256- and 64 hexadecimal digits", is: isIntegrity };
const TEXTS: LockKind = {
  wanted: "a list of texts",
  is: (value) => Array.isArray(value) && value.every(TEXT.is),
};
const OBJECT: LockKind = { wanted: "an object", is: isObject };
const FIELDS: Readonly<Record<keyof Pinned, LockKind>> = {
  source: TEXT,
  kind: oneOf(pinnedKinds()),
  version: TEXT,
  routing: oneOf(["local", "cloud"]),
  integrity: HASH,
  command: TEXTS,
  url: TEXT,
  permissions: {
    wanted: "lists of read, write, net, run and env",
    is: (value) =>
      isObject(value) &&
      Object.entries(value).every(([name, list]) =>
        Object.hasOwn(NO_PERMISSIONS, name) && TEXTS.is(list)
      ),
  },
  env: TEXTS,
  headers: TEXTS,
  envFile: TEXTS,
  address: TEXT,
  manifest: HASH,
};

/**
 * Parses a lock. Throws CONFIG_INVALID if any part is invalid: PML neither uses nor replaces an
 * invalid lock.
 */
export function parseLock(text: string, file: string): LockEntries {
  const reader = readerOf(file);
  if (/^(?:<{7}|={7}|>{7})/m.test(text)) {
    throw reader.errorAt("", "the marks of a merge", "the lines of one side");
  }
  const whole = jsonOf(text, file);
  const duplicate = duplicateKey(text);
  // guard: lock-twin
  if (duplicate !== undefined) {
    throw reader.errorAt(duplicate, "the key a second time", "each key once");
  }
  const { version, servers } = reader.checkMembers("", whole, ["version", "servers"]);
  if (version !== 1) throw reader.errorAt("version", version, "1");
  return parseEntries(servers, reader);
}

/** Parses the approvals of a folder, which PML stores in its home. */
export function parsePinned(
  text: string,
  { file, folder }: { readonly file: string; readonly folder: string },
): LockEntries {
  const reader = readerOf(file);
  const { path, servers } = objectOf(jsonOf(text, file));
  // guard: pins-of-workspace
  if (path !== folder) throw reader.errorAt("path", path, folder);
  return parseEntries(servers, reader);
}

function jsonOf(text: string, file: string): unknown {
  try {
    return parseJson(text);
  } catch (error) {
    const [, line, column] = /line (\d+) column (\d+)/.exec(`${error}`) ?? [];
    throw readerOf(shownPlace(file, { line, column })).errorAt("", "invalid JSON", "JSON");
  }
}

/** Returns the text of a lock. It is the same for the same entries, whatever their order. */
export function lockText(servers: LockEntries): string {
  const sorted: unknown = JSON.parse(canonicalJson(servers as unknown as Json)); // undefined members are not written
  return `${JSON.stringify({ version: 1, servers: sorted }, null, 2)}\n`;
}

/**
 * Returns the pinned facts of a registry's entry. `hash` is its manifest hash.
 */
export function pinnedOf(
  manifest: Manifest,
  { source, hash }: { readonly source: string; readonly hash: string },
): Pinned {
  const { version, routing, envRequired } = manifest;
  const { env = envRequired, headers, ...facts } = manifestKindOf(manifest).facts(manifest);
  const base = { source, kind: kindOf(manifest).pinnedAs, version, routing, manifest: hash };
  return {
    ...base,
    ...facts,
    ...headers && { headers: sortedNames(headers) },
    env: sortedNames(env),
  };
}

/**
 * Returns the names of a server's variables or headers, each with the variables in its value
 * (`TOKEN=${GITHUB_TOKEN}`), and never a literal value.
 */
export function lockVariables(
  values: Readonly<Record<string, string>>,
): readonly string[] | undefined {
  const names = Object.entries(values).map(([name, value]) => {
    const from = [...value.matchAll(/\$\{(\w+)/g)].map(([, key]) => `\${${key}}`).join("");
    return from === "" ? name : `${name}=${from}`;
  });
  return sortedNames(names);
}

function sortedNames(names: readonly string[]): readonly string[] | undefined {
  return names.length === 0 ? undefined : [...new Set(names)].sort();
}

/** Returns a line for each pinned fact of a server that changed. */
export function pinnedChanges(was: Pinned, is: Pinned): readonly string[] {
  const keys = Object.keys(FIELDS) as (keyof Pinned)[]; // the keys of a literal
  return keys.flatMap((key) => {
    const [before, now] = [shownValue(was[key]), shownValue(is[key])];
    if (before === now) return [];
    const older = key === "version" && isOlder(is.version, was.version) ? " (an older one)" : "";
    return [`${key}: was ${before}, is ${now}${older}`];
  });
}

function shownValue(value: Pinned[keyof Pinned]): string {
  return value === undefined ? "nothing" : canonicalJson(value as unknown as Json); // plain JSON
}

/** Returns whether a version is lower than another by their numbers; false if one has none. */
export function isOlder(version = "", than = ""): boolean {
  const [numbers, others] = [version, than].map((text) => text.split(/[.+-]/).map(Number));
  for (const [index, number] of (numbers ?? []).entries()) {
    const other = others?.[index] ?? 0;
    if (number !== other) return number < other;
  }
  return false;
}

type LockReader = ReturnType<typeof readerOf>;

function readerOf(file: string) {
  const errorAt = (key: string, found: unknown, wanted: string) => {
    const shown = typeof found === "string"
      ? found
      : visible(JSON.stringify(found) ?? "nothing", 80);
    const at = key === "" ? "" : `, key ${quoted(key, 300)}`;
    const message = `Cannot use ${quoted(file, 400)}${at}: found ${shown}, wanted ${wanted}`;
    return new PmlError("CONFIG_INVALID", message, {
      hint: "Fix or restore the file; without it PML asks again",
      detail: { problems: [{ file, key, found: shown, wanted }] },
    });
  };
  const checkValue = (key: string, found: unknown, { wanted, is }: LockKind) => {
    if (!is(found)) throw errorAt(key, typeof found === "string" ? quoted(found) : found, wanted);
  };
  const checkMembers = (key: string, found: unknown, known: readonly string[]): JsonObject => {
    checkValue(key, found, OBJECT);
    const object = found as JsonObject; // checked just now
    const odd = Object.keys(object).find((name) => !known.includes(name));
    const at = key === "" ? "" : `${key}.`;
    if (odd !== undefined) throw errorAt(`${at}${odd}`, "an unknown key", known.join(", "));
    return object;
  };
  return { errorAt, checkValue, checkMembers };
}

function parseEntries(servers: unknown, reader: LockReader): LockEntries {
  reader.checkValue("servers", servers, OBJECT);
  const entries = Object.entries(servers as JsonObject); // checked just now
  return Object.fromEntries(entries.map(([name, entry]) => {
    const key = `servers.${name}`;
    if (!isName(name)) throw reader.errorAt(key, "an unknown key", "the name of a server");
    return [name, parseEntry(entry, { key, reader })];
  }));
}

/** Returns whether a key is the name of a server, or of a capability (`fs:read_json`). */
function isName(key: string): boolean {
  const [server = "", action = "any", ...rest] = key.split(":");
  return isServerName(server) && isToolName(action) && rest.length === 0;
}

function parseEntry(
  value: unknown,
  { key, reader }: { readonly key: string; readonly reader: LockReader },
): LockEntry {
  const entry = reader.checkMembers(key, value, [...Object.keys(FIELDS), "tools"]);
  for (const [name, kind] of Object.entries(FIELDS)) {
    const isOptional = name !== "source" && name !== "kind";
    if (entry[name] !== undefined || !isOptional) {
      reader.checkValue(`${key}.${name}`, entry[name], kind);
    }
  }
  reader.checkValue(`${key}.tools`, entry.tools, OBJECT);
  for (const [tool, hash] of Object.entries(entry.tools as JsonObject)) {
    const at = `${key}.tools.${tool}`;
    if (!isToolName(tool) && tool !== INSTRUCTIONS && !isSkillPin(tool)) {
      throw reader.errorAt(at, "an unknown key", "the name of a tool");
    }
    reader.checkValue(at, hash, HASH);
  }
  return entry as unknown as LockEntry; // each member was checked
}

/**
 * Returns a key that occurs twice in one object; undefined if there is none. A parser would
 * silently use the last value.
 */
function duplicateKey(json: string): string | undefined {
  const open: Set<string>[] = [];
  for (const [token] of json.matchAll(/"(?:[^"\\]+|\\.)*"(?:\s*:)?|[{}]/gs)) {
    if (token === "{") open.push(new Set());
    else if (token === "}") open.pop();
    else if (token.endsWith(":")) {
      const key: string = JSON.parse(token.slice(0, -1));
      const keys = open.at(-1);
      if (keys?.size === keys?.add(key).size) return key;
    }
  }
  return undefined;
}

function oneOf(values: readonly string[]): LockKind {
  return {
    wanted: `one of ${values.join(", ")}`,
    is: (value) => values.some((allowed) => allowed === value),
  };
}

/**
 * What is pinned of servers, as `pml.lock` holds it: read strictly, written canonically, compared by
 * meaning.
 *
 * @module
 */

import type { Pinned } from "../core/server_identity.ts";
import { PmlError } from "../core/errors.ts";
import type { Manifest } from "../core/manifest.ts";
import { canonical, isObject, type Json, type JsonObject, quoted } from "../core/json.ts";
import { NO_PERMISSIONS } from "../core/tool.ts";
import { isServerName, isToolName } from "../core/tool_id.ts";
import { isIntegrity } from "./integrity.ts";

/** What is pinned of a server and of its tools: their definitions' hashes, by name. */
export interface LockEntry extends Pinned {
  readonly tools: Readonly<Record<string, string>>;
}

/** What is pinned, by server. */
export type LockEntries = Readonly<Record<string, LockEntry>>;

/** The most bytes that a lock may have. */
export const LOCK_MAX = 4_000_000;

/** What may stand at a key. */
interface Kind {
  readonly wanted: string;
  readonly is: (value: unknown) => boolean;
}

const TEXT: Kind = { wanted: "a text", is: (value) => typeof value === "string" };
const HASHED: Kind = { wanted: "sha256- and 64 hexadecimal digits", is: isIntegrity };
const TEXTS: Kind = {
  wanted: "a list of texts",
  is: (value) => Array.isArray(value) && value.every(TEXT.is),
};
const OBJECT: Kind = { wanted: "an object", is: isObject };
const FIELDS: Readonly<Record<keyof Pinned, Kind>> = {
  source: TEXT,
  kind: oneOf(["deno", "stdio", "http", "cloud"]),
  version: TEXT,
  routing: oneOf(["local", "cloud"]),
  integrity: HASHED,
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
  manifest: HASHED,
};

/** Reads a lock, or throws CONFIG_INVALID: nothing of a broken one counts, and none is made anew. */
export function parseLock(text: string, file: string): LockEntries {
  const read = readerOf(file);
  if (/^(?:<{7}|={7}|>{7})/m.test(text)) {
    throw read.wrong("", "the marks of a merge", "one of both sides");
  }
  let whole: unknown;
  try {
    whole = JSON.parse(text);
  } catch (error) {
    throw read.wrong(
      "",
      `what is no JSON (${error instanceof Error ? error.message : ""})`,
      "JSON",
    );
  }
  const twin = firstTwin(text);
  if (twin !== undefined) throw read.wrong(twin, "the key a second time", "each key once");
  const { version, servers } = read.members("", whole, ["version", "servers"]);
  if (version !== 1) throw read.wrong("version", version, "1");
  return parseEntries(servers, read);
}

/** Reads what was pinned from JSON that PML keeps elsewhere. */
export function parsePinned(servers: unknown, file: string): LockEntries {
  return parseEntries(servers, readerOf(file));
}

/** Writes a lock: the same text for the same pins, whatever their order. */
export function lockText(servers: LockEntries): string {
  const sorted: unknown = JSON.parse(canonical(servers as unknown as Json)); // what is undefined is not written
  return `${JSON.stringify({ version: 1, servers: sorted }, null, 2)}\n`;
}

/** Gives an entry of a registry as it is pinned; `hash` is that of all in it that counts. */
export function pinnedOf(
  manifest: Manifest,
  { source, hash }: { readonly source: string; readonly hash: string },
): Pinned {
  const { kind, version, routing, envRequired } = manifest;
  const base = { source, kind, version, routing, manifest: hash };
  const env = listed(envRequired);
  switch (manifest.kind) {
    case "deno":
      return { ...base, integrity: manifest.integrity, permissions: manifest.permissions, env };
    case "stdio": {
      const given = templatesOf(manifest.env);
      const command = [manifest.command, ...manifest.args];
      return { ...base, command, env: listed([...given, ...envRequired]) };
    }
    case "http":
      return { ...base, url: manifest.url, headers: listed(templatesOf(manifest.headers)), env };
    case "cloud":
      return { ...base, url: manifest.proxyTo, env };
  }
}

/** What a registry writes is no secret: a change of it is to be seen. */
function templatesOf(values: Readonly<Record<string, string>>): readonly string[] {
  return Object.entries(values).map(([name, value]) => `${name}=${value}`);
}

/** Names what a server is given, and the variables that go in, without any value. */
export function variablesOf(
  values: Readonly<Record<string, string>>,
): readonly string[] | undefined {
  const names = Object.entries(values).map(([name, value]) => {
    const from = [...value.matchAll(/\$\{(\w+)/g)].map(([, key]) => `\${${key}}`).join("");
    return from === "" ? name : `${name}=${from}`;
  });
  return listed(names);
}

function listed(names: readonly string[]): readonly string[] | undefined {
  return names.length === 0 ? undefined : [...new Set(names)].sort();
}

/** Gives what is pinned under a name, and nothing that every object has. */
export function pinnedIn<T>(record: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(record, name) ? record[name] : undefined;
}

/** Says line by line in what a server is another one than was pinned; nothing where it is the same. */
export function pinnedChanges(was: Pinned, is: Pinned): readonly string[] {
  const keys = Object.keys(FIELDS) as (keyof Pinned)[]; // its own keys
  return keys.flatMap((key) => {
    const [before, now] = [written(was[key]), written(is[key])];
    if (before === now) return [];
    const older = key === "version" && isOlder(is.version, was.version) ? " (an older one)" : "";
    return [`${key}: was ${before}, is ${now}${older}`];
  });
}

function written(value: Pinned[keyof Pinned]): string {
  return value === undefined ? "nothing" : canonical(value as unknown as Json); // plain JSON
}

/** Compares versions by their numbers; what has none is not older. */
function isOlder(version = "", than = ""): boolean {
  const [one, other] = [version, than].map((text) => text.split(/[.+-]/).map(Number));
  for (const [at, number] of (one ?? []).entries()) {
    const before = other?.[at] ?? 0;
    if (number !== before) return number < before;
  }
  return false;
}

type Reader = ReturnType<typeof readerOf>;

function readerOf(file: string) {
  const wrong = (key: string, found: unknown, wanted: string) => {
    const said = typeof found === "string" ? found : quoted(JSON.stringify(found) ?? "nothing");
    const at = key === "" ? "" : `, key ${quoted(key, 300)}`;
    const message = `Cannot use ${quoted(file, 400)}${at}: found ${said}, wanted ${wanted}`;
    return new PmlError("CONFIG_INVALID", message, {
      hint: "Mend it or take it from the repository again; where it is removed, PML asks anew",
      detail: { problems: [{ file, key, found: said, wanted }] },
    });
  };
  const value = (key: string, found: unknown, { wanted, is }: Kind) => {
    if (!is(found)) throw wrong(key, typeof found === "string" ? quoted(found) : found, wanted);
  };
  const members = (key: string, found: unknown, known: readonly string[]): JsonObject => {
    value(key, found, OBJECT);
    const object = found as JsonObject; // looked at just now
    const odd = Object.keys(object).find((name) => !known.includes(name));
    const at = key === "" ? "" : `${key}.`;
    if (odd !== undefined) throw wrong(`${at}${odd}`, "an unknown key", known.join(", "));
    return object;
  };
  return { wrong, value, members };
}

function parseEntries(servers: unknown, read: Reader): LockEntries {
  read.value("servers", servers, OBJECT);
  const entries = Object.entries(servers as JsonObject); // looked at just now
  return Object.fromEntries(entries.map(([name, said]) => {
    const key = `servers.${name}`;
    if (!isName(name)) throw read.wrong(key, "an unknown key", "the name of a server");
    return [name, parseEntry(said, { key, read })];
  }));
}

/** Tells whether a key names a server, or a capability of one (`fs:read_json`). */
function isName(key: string): boolean {
  const [server = "", action = "any", ...rest] = key.split(":");
  return isServerName(server) && isToolName(action) && rest.length === 0;
}

function parseEntry(
  said: unknown,
  { key, read }: { readonly key: string; readonly read: Reader },
): LockEntry {
  const entry = read.members(key, said, [...Object.keys(FIELDS), "tools"]);
  for (const [name, kind] of Object.entries(FIELDS)) {
    const isOptional = name !== "source" && name !== "kind";
    if (entry[name] !== undefined || !isOptional) read.value(`${key}.${name}`, entry[name], kind);
  }
  read.value(`${key}.tools`, entry.tools, OBJECT);
  for (const [tool, hash] of Object.entries(entry.tools as JsonObject)) {
    const at = `${key}.tools.${tool}`;
    if (!isToolName(tool)) throw read.wrong(at, "an unknown key", "the name of a tool");
    read.value(at, hash, HASHED);
  }
  return entry as unknown as LockEntry; // each member was looked at
}

/** Finds a key that comes twice in one object: of two, a parser keeps the last without a word. */
function firstTwin(json: string): string | undefined {
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

function oneOf(values: readonly string[]): Kind {
  return {
    wanted: `one of ${values.join(", ")}`,
    is: (value) => values.some((one) => one === value),
  };
}

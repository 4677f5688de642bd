/**
 * The catalog of one registry: downloaded page by page and cached, so that it can be searched
 * offline.
 *
 * @module
 */

import { parseExact } from "../core/exact_json.ts";
import { isObject, textOf, withoutUndefined } from "../core/json.ts";
import type { Manifest, ManifestTool } from "../servers/manifest.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { examplesIn } from "../protocol/tool_examples.ts";
import { yieldTurn } from "../io/waiting.ts";
import { entryTools } from "./_entry_tools.ts";
import { isSound, MOST, shownText } from "./_entry_words.ts";
import { findKind } from "../servers/kinds.ts";
import type { CachedRegistry, RegistryUser } from "./_cached_registry.ts";
import type { Cache } from "./cache.ts";
import { entryName, fqdnOf, isVersion } from "./fqdn.ts";
import type { CatalogPage } from "./source.ts";

/** An entry of a catalog. It has enough to find a server, but not to run it. */
export interface CatalogItem {
  /** The name in the registry, without a version. */
  readonly fqdn: string;
  /** The name of the server in PML. */
  readonly name: string;
  readonly kind: Manifest["kind"];
  readonly version: string | undefined;
  readonly description: string | undefined;
  readonly routing: Manifest["routing"];
  readonly tools: readonly ManifestTool[];
  /** The URL of the registry that offers the server. */
  readonly source: string;
}

/**
 * A cached entry: name, kind, version, description, routing, names of tools, and their definitions
 * as JSON text, because most of them are never needed.
 */
type CatalogRow = readonly [
  string,
  Manifest["kind"],
  string | null,
  string,
  "local" | "cloud" | null,
  readonly string[],
  string,
];

/** A cached catalog. */
export interface CachedCatalog {
  readonly at: number;
  readonly rows: readonly CatalogRow[];
  /** The number of unusable entries. */
  readonly dropped: number;
}

/** The limits of one catalog: entries, pages, and characters of all tool definitions. */
const MOST_ENTRIES = 50_000;
const MOST_PAGES = 200;
const MOST_CHARACTERS = 32 * 1024 * 1024;
/** The maximum length of the tool definitions of one entry; longer definitions are dropped. */
const LONGEST_DEFINITIONS = 64 * 1024;
/** The time after which no further page is requested, in milliseconds. */
const LONGEST_MS = 120_000;
/** The maximum depth of an entry. */
const DEEPEST = 32;
/** How long rows are read before other work continues, in milliseconds. */
const AT_ONCE_MS = 10;

/** Returns the cached catalog of a registry; undefined if there is none. */
export function readCachedCatalog(
  registry: CachedRegistry,
  cache: Cache,
): CachedCatalog | undefined {
  // The cache returns only values that `freshCatalog` stored.
  return cache.read("catalog", [registry.source.url]) as CachedCatalog | undefined;
}

/** Downloads the catalog of a registry and caches it. */
export async function freshCatalog(
  registry: CachedRegistry,
  cache: Cache,
  { log, closing: signal }: Pick<RegistryUser, "log" | "closing">,
): Promise<CachedCatalog> {
  const rows = new Map<string, CatalogRow>();
  const cursors = new Set<string | undefined>();
  const until = performance.now() + LONGEST_MS;
  let [dropped, characters, since] = [0, 0, performance.now()];
  let cursor: string | undefined;
  const isFull = () => rows.size >= MOST_ENTRIES || characters >= MOST_CHARACTERS;
  do {
    cursors.add(cursor);
    const page: CatalogPage = await registry.ask((source) => source.catalog(signal, cursor));
    for (const item of page.items) {
      if (isFull()) break;
      const row = rowOf(item);
      if (row === undefined || rows.has(row[0])) dropped++;
      else rows.set(row[0], row);
      characters += row?.[6].length ?? 0;
      // Yields during a long page, so that calls are not delayed.
      if (performance.now() - since < AT_ONCE_MS) continue;
      await yieldTurn();
      since = performance.now();
    }
    cursor = page.next;
  } while (
    !cursors.has(cursor) && cursors.size < MOST_PAGES && !isFull() && performance.now() < until
  );
  if (cursor !== undefined) {
    log.warn(
      `The catalog of "${registry.source.url}" has no end: after ${rows.size} entries PML stopped`,
    );
  }
  const catalog = { at: Date.now(), rows: [...rows.values()], dropped };
  cache.keep("catalog", [registry.source.url], catalog);
  return catalog;
}

/**
 * Yields the entries of a catalog. The definitions of their tools are parsed when they are first
 * read.
 */
export function* itemsOf({ rows }: CachedCatalog, source: string): Generator<CatalogItem> {
  for (const [fqdn, kind, version, description, routing, names, definitions] of rows) {
    let tools: readonly ManifestTool[] | undefined;
    yield {
      fqdn,
      name: fqdn.split(":")[0] ?? "",
      kind,
      version: version ?? undefined,
      description,
      routing: routing ?? undefined,
      get tools() {
        tools ??= toolsFrom(names, definitions);
        return tools;
      },
      source,
    };
  }
}

function toolsFrom(names: readonly string[], definitions: string): readonly ManifestTool[] {
  const tools: (ToolDefinition | null)[] = definitions === "" ? [] : parseExact(definitions);
  return names.map((name, index) => ({ name, definition: tools[index] ?? undefined }));
}

function rowOf(entry: unknown): CatalogRow | undefined {
  if (!isObject(entry) || !isSound(entry, DEEPEST)) return undefined;
  const { fqdn, type, version, description, routing, tools } = entry;
  const id = fqdnOf(textOf(fqdn));
  const kind = findKind(textOf(type));
  if (id === undefined || kind?.manifest === undefined) return undefined;
  const listed = entryTools(Array.isArray(tools) ? tools.slice(0, MOST.tools) : [], id)
    .tools.filter(({ definition }) => definition?.visibility !== "internal");
  const isDefined = listed.some(({ definition }) => definition !== undefined);
  const definitions = isDefined
    ? JSON.stringify(listed.map(({ definition }) => definition && shortened(definition)))
    : "";
  return [
    entryName(id),
    kind.pinnedAs,
    typeof version === "string" && isVersion(version) ? version : null,
    shownText(textOf(description)) ?? "",
    routing === "local" || routing === "cloud" ? routing : null,
    listed.map(({ name }) => name),
    definitions.length <= LONGEST_DEFINITIONS ? definitions : "",
  ];
}

function shortened(definition: ToolDefinition): ToolDefinition {
  const { name, title, description, inputSchema, annotations } = definition;
  const examples = examplesIn(definition);
  return withoutUndefined({
    name,
    title: shownText(title),
    description: shownText(description) ?? "",
    inputSchema,
    annotations,
    // Search uses examples before the server is approved.
    examples: examples.length === 0 ? undefined : examples,
  });
}

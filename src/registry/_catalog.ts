/**
 * What a registry offers, page by page, and kept so that it can be searched without it.
 *
 * @module
 */

import { isObject, textOf } from "../core/json.ts";
import type { Manifest, ManifestTool } from "../core/manifest.ts";
import type { ToolDefinition } from "../core/tool.ts";
import { toolsOf } from "./_entry_tools.ts";
import { isSound, shownText } from "./_entry_words.ts";
import type { Place } from "./_place.ts";
import type { Cache } from "./cache.ts";
import { entryName, fqdnOf, isVersion } from "./fqdn.ts";
import type { CatalogPage } from "./source.ts";

/** An entry of a catalog: enough to find it, not enough to run it. */
export interface CatalogItem {
  /** Its name in the registry, without a version. */
  readonly fqdn: string;
  /** The name of its server here. */
  readonly name: string;
  readonly kind: Manifest["kind"];
  readonly version: string | undefined;
  readonly description: string | undefined;
  readonly routing: Manifest["routing"];
  readonly tools: readonly ManifestTool[];
  /** The registry that offers it. */
  readonly source: string;
}

/** A catalog as it is kept. */
export interface KeptCatalog {
  readonly at: number;
  readonly items: readonly CatalogItem[];
  /** How many entries could not be used. */
  readonly dropped: number;
}

const KINDS: readonly Manifest["kind"][] = ["deno", "stdio", "http", "cloud"];
const MOST_ENTRIES = 50_000;
const MOST_PAGES = 200;
const MOST_CHARACTERS = 32 * 1024 * 1024;
const LONGEST_ITEM = 64 * 1024;
const LONGEST_MS = 120_000;
const DEEPEST = 32;

/** Gives the catalog that was kept of a registry. */
export function keptCatalog(place: Place, cache: Cache): KeptCatalog | undefined {
  // What the cache gives is what was kept below, or nothing.
  return cache.read("catalog", [place.source.url]) as KeptCatalog | undefined;
}

/** Asks a registry for all that it offers, and keeps it. */
export async function freshCatalog(
  place: Place,
  { cache, signal, warn }: {
    readonly cache: Cache;
    readonly signal: AbortSignal;
    readonly warn: (message: string) => void;
  },
): Promise<KeptCatalog> {
  const items = new Map<string, CatalogItem>();
  const cursors = new Set<string | undefined>();
  const until = performance.now() + LONGEST_MS;
  let [dropped, characters] = [0, 0];
  let cursor: string | undefined;
  do {
    cursors.add(cursor);
    const page: CatalogPage = await place.ask((source) => source.catalog({ signal, cursor }));
    for (const said of page.items) {
      if (items.size >= MOST_ENTRIES || characters >= MOST_CHARACTERS) break;
      const item = itemOf(said, place.source.url);
      if (item === undefined || items.has(item.fqdn)) dropped++;
      else characters += put(items, item);
    }
    cursor = page.next;
  } while (
    !cursors.has(cursor) && cursors.size < MOST_PAGES && items.size < MOST_ENTRIES &&
    characters < MOST_CHARACTERS && performance.now() < until
  );
  if (cursor !== undefined) {
    warn(
      `The catalog of "${place.source.url}" has no end: after ${items.size} entries it was left`,
    );
  }
  const kept = { at: Date.now(), items: [...items.values()], dropped };
  cache.keep("catalog", [place.source.url], kept);
  return kept;
}

/** Adds an entry, without what its tools take where that is too long, and gives its length. */
function put(items: Map<string, CatalogItem>, item: CatalogItem): number {
  const { length } = JSON.stringify(item);
  const isShort = length <= LONGEST_ITEM;
  const tools = item.tools.map(({ name }) => ({ name, definition: undefined }));
  items.set(item.fqdn, isShort ? item : { ...item, tools });
  return isShort ? length : JSON.stringify(tools).length;
}

function itemOf(said: unknown, source: string): CatalogItem | undefined {
  if (!isObject(said) || !isSound(said, DEEPEST)) return undefined;
  const { fqdn, type, version, description, routing, tools } = said;
  const asked = fqdnOf(textOf(fqdn));
  const kind = KINDS.find((kind) => kind === type);
  if (asked === undefined || kind === undefined) return undefined;
  const listed = toolsOf(Array.isArray(tools) ? tools.slice(0, 1000) : [], {
    asked,
    onLeftOut: () => {},
  });
  return {
    fqdn: entryName(asked),
    name: asked.name,
    kind,
    version: typeof version === "string" && isVersion(version) ? version : undefined,
    description: shownText(textOf(description)),
    routing: routing === "local" || routing === "cloud" ? routing : undefined,
    tools: listed.tools.map(({ name, definition }) => ({
      name,
      definition: definition && shortened(definition),
    })),
    source,
  };
}

function shortened(definition: ToolDefinition): ToolDefinition {
  const { name, title, description, inputSchema } = definition;
  return {
    name,
    ...(title === undefined ? {} : { title: shownText(title) ?? "" }),
    description: shownText(description) ?? "",
    inputSchema,
  };
}

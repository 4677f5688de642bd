/**
 * What a registry offers, page by page, and kept so that it can be searched without it.
 *
 * @module
 */

import { isObject, textOf } from "../core/json.ts";
import type { Manifest, ManifestTool } from "../core/manifest.ts";
import type { ToolDefinition } from "../core/tool.ts";
import { turn } from "../io/waiting.ts";
import { toolsOf } from "./_entry_tools.ts";
import { isSound, MOST, shownText } from "./_entry_words.ts";
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

/**
 * An entry as it is kept: name, kind, version, description, routing, the names of its tools, and their
 * definitions as a text, because most of them are never looked at.
 */
type Row = readonly [
  string,
  Manifest["kind"],
  string | null,
  string,
  "local" | "cloud" | null,
  readonly string[],
  string,
];

/** A catalog as it is kept. */
export interface KeptCatalog {
  readonly at: number;
  readonly rows: readonly Row[];
  /** How many entries could not be used. */
  readonly dropped: number;
}

const KINDS: readonly Manifest["kind"][] = ["deno", "stdio", "http", "cloud"];
const MOST_ENTRIES = 50_000;
const MOST_PAGES = 200;
const MOST_CHARACTERS = 32 * 1024 * 1024;
const LONGEST_DEFINITIONS = 64 * 1024;
const LONGEST_MS = 120_000;
const DEEPEST = 32;
const AT_ONCE_MS = 10;

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
  const rows = new Map<string, Row>();
  const cursors = new Set<string | undefined>();
  const until = performance.now() + LONGEST_MS;
  let [dropped, characters, since] = [0, 0, performance.now()];
  let cursor: string | undefined;
  const isFull = () => rows.size >= MOST_ENTRIES || characters >= MOST_CHARACTERS;
  do {
    cursors.add(cursor);
    const page: CatalogPage = await place.ask((source) => source.catalog({ signal, cursor }));
    for (const said of page.items) {
      if (isFull()) break;
      const row = rowOf(said);
      if (row === undefined || rows.has(row[0])) dropped++;
      else rows.set(row[0], row);
      characters += row?.[6].length ?? 0;
      // A call that comes meanwhile does not wait for a long page.
      if (performance.now() - since < AT_ONCE_MS) continue;
      await turn();
      since = performance.now();
    }
    cursor = page.next;
  } while (
    !cursors.has(cursor) && cursors.size < MOST_PAGES && !isFull() && performance.now() < until
  );
  if (cursor !== undefined) {
    warn(`The catalog of "${place.source.url}" has no end: after ${rows.size} entries it was left`);
  }
  const kept = { at: Date.now(), rows: [...rows.values()], dropped };
  cache.keep("catalog", [place.source.url], kept);
  return kept;
}

/** Gives the entries of a catalog; the definitions of their tools are read by who looks at them. */
export function* itemsOf({ rows }: KeptCatalog, source: string): Generator<CatalogItem> {
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
  const read: (ToolDefinition | null)[] = definitions === "" ? [] : JSON.parse(definitions);
  return names.map((name, index) => ({ name, definition: read[index] ?? undefined }));
}

function rowOf(said: unknown): Row | undefined {
  if (!isObject(said) || !isSound(said, DEEPEST)) return undefined;
  const { fqdn, type, version, description, routing, tools } = said;
  const asked = fqdnOf(textOf(fqdn));
  const kind = KINDS.find((kind) => kind === type);
  if (asked === undefined || kind === undefined) return undefined;
  const listed = toolsOf(Array.isArray(tools) ? tools.slice(0, MOST.tools) : [], {
    asked,
    onLeftOut: () => {},
  }).tools.filter(({ definition }) => definition?.visibility !== "internal");
  const isDefined = listed.some(({ definition }) => definition !== undefined);
  const definitions = isDefined
    ? JSON.stringify(listed.map(({ definition }) => definition && shortened(definition)))
    : "";
  return [
    entryName(asked),
    kind,
    typeof version === "string" && isVersion(version) ? version : null,
    shownText(textOf(description)) ?? "",
    routing === "local" || routing === "cloud" ? routing : null,
    listed.map(({ name }) => name),
    definitions.length <= LONGEST_DEFINITIONS ? definitions : "",
  ];
}

function shortened(definition: ToolDefinition): ToolDefinition {
  const { name, title, description, inputSchema, annotations } = definition;
  return {
    name,
    ...(title === undefined ? {} : { title: shownText(title) ?? "" }),
    description: shownText(description) ?? "",
    inputSchema,
    ...(annotations && { annotations }),
  };
}

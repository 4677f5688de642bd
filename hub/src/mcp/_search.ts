/**
 * Finds tools and capabilities of a hub by words.
 *
 * @module
 */

import { isObject, type Json, type JsonObject, rankTools, textOf } from "@casys/pml/registry";
import type { HubStore, StoredEntry } from "../store/store.ts";

/** A tool that was found. */
export interface Hit {
  /** The name by which PML calls it: `weather:now`. */
  readonly name: string;
  readonly description: string;
  readonly version: string;
  readonly type: string;
  readonly routing: string;
  readonly input_schema?: JsonObject;
}

/** A search. */
export interface Wanted {
  readonly query: string;
  /** Tools of servers, or capabilities. */
  readonly kind: "tools" | "capabilities";
  readonly limit: number;
}

/** How many entries are searched, and how much of each is returned. */
const MOST = { entries: 300, words: 12, tools: 200, ranked: 100, description: 300, schema: 4_000 };

/** Returns the best matches, the best first. */
export async function search(
  store: Pick<HubStore, "page">,
  { query, kind, limit }: Wanted,
): Promise<readonly Hit[]> {
  const words = wordsOf(query);
  const entries = (await entriesWith(store, words))
    .filter(({ fqdn }) => fqdn.includes(":") === (kind === "capabilities"));
  const likely = likeliest(entries.flatMap(toolsOf), words);
  const hits = new Map(likely.map((hit) => [hit.id, hit]));
  const among = [...Map.groupBy(hits.values(), ({ server }) => server)].map(([name, own]) => ({
    name,
    description: own[0]?.about,
    tools: own.map(({ id, said, schema }) => ({
      name: id.slice(name.length + 1),
      description: said,
      inputSchema: schema ?? { type: "object" },
    })),
  }));
  const ranked = await rankTools(query, { among, limit });
  return ranked.flatMap((id) => {
    const hit = hits.get(id);
    return hit === undefined ? [] : [hitOf(hit)];
  });
}

function wordsOf(query: string): readonly string[] {
  const all = query.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter((word) => word.length > 1);
  return [...new Set(all)].slice(0, MOST.words);
}

/** Returns entries that have all words or, where there are none, those that have any. */
async function entriesWith(
  store: Pick<HubStore, "page">,
  words: readonly string[],
): Promise<readonly StoredEntry[]> {
  if (words.length === 0) return [];
  const page = (those: readonly string[], limit: number) =>
    store.page({ after: "", words: those, limit });
  const all = await page(words, MOST.entries);
  if (all.length > 0 || words.length === 1) return all;
  const each = await Promise.all(
    words.map((word) => page([word], Math.ceil(MOST.entries / words.length))),
  );
  return [...new Map(each.flat().map((entry) => [entry.fqdn, entry])).values()];
}

/** Keeps those that have most of the words; rare words count more. To rank all would take long. */
function likeliest(all: readonly Ranked[], words: readonly string[]): readonly Ranked[] {
  if (all.length <= MOST.ranked) return all;
  const texts = all.map(({ id, said }) => `${id} ${said}`.toLowerCase());
  const scores = new Float64Array(all.length);
  for (const word of words) {
    const has = texts.flatMap((text, at) => text.includes(word) ? [at] : []);
    const worth = Math.log(1 + all.length / (has.length + 1));
    for (const at of has) scores[at] = (scores[at] ?? 0) + worth;
  }
  const order = [...all.keys()].sort((a, b) => (scores[b] ?? 0) - (scores[a] ?? 0) || a - b);
  return order.slice(0, MOST.ranked).flatMap((at) => all[at] ?? []);
}

/** A tool with the values that rank it. */
interface Ranked {
  readonly entry: StoredEntry;
  /** The name of its server or namespace, and with that its own. */
  readonly server: string;
  readonly id: string;
  /** Whether it represents a server that names no tools. */
  readonly isWhole: boolean;
  readonly said: string;
  readonly about: string;
  readonly schema: JsonObject | undefined;
}

function toolsOf(entry: StoredEntry): readonly Ranked[] {
  const { fqdn, manifest } = entry;
  const tools: readonly Json[] = Array.isArray(manifest.tools) ? manifest.tools : [];
  const about = textOf(manifest.description).slice(0, MOST.description);
  const [server = "", action] = fqdn.split(":");
  const isWhole = tools.length === 0;
  return (isWhole ? [{ name: "tools" }] : tools.slice(0, MOST.tools)).map((tool) => {
    const { name, description, inputSchema }: JsonObject = isObject(tool) ? tool : { name: tool };
    const own = action ?? textOf(name).split(":").at(-1) ?? "";
    const said = textOf(description).slice(0, MOST.description) || about;
    const schema = isObject(inputSchema) ? inputSchema as JsonObject : undefined; // a part of one
    return { entry, server, id: `${server}:${own}`, isWhole, said, about, schema };
  });
}

function hitOf({ entry, id, isWhole, said, schema }: Ranked): Hit {
  const { fqdn, version, manifest } = entry;
  const isShort = schema !== undefined && JSON.stringify(schema).length <= MOST.schema;
  return {
    name: isWhole ? fqdn : id,
    description: said,
    version,
    type: textOf(manifest.type),
    routing: textOf(manifest.routing),
    ...isShort && { input_schema: schema },
  };
}

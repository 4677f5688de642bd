/**
 * Finds tools and capabilities of a hub by words.
 *
 * @module
 */

import { isObject, type Json, type JsonObject, rankTools, textOf } from "@casys/pml/registry";
import type { HubStore, StoredEntry } from "../store/store.ts";

/** A tool that was found. */
export interface Hit {
  /** The name that PML uses for the tool: `weather:now`. */
  readonly name: string;
  readonly description: string;
  readonly version: string;
  readonly type: string;
  readonly routing: string;
  readonly input_schema?: JsonObject;
}

/** Options of `search()`. */
export interface ToolSearch {
  readonly query: string;
  /** Whether to find tools of servers or capabilities. */
  readonly kind: "tools" | "capabilities";
  readonly limit: number;
}

/**
 * The maximum numbers of entries that are read, of words of a query, of tools of an entry, of ranked
 * tools, of characters of a description, and of characters of a returned schema.
 */
const LIMITS = {
  entries: 300,
  words: 12,
  tools: 200,
  ranked: 100,
  description: 300,
  schema: 4_000,
};

/** Returns the tools that match a query best, the best first. */
export async function search(
  store: Pick<HubStore, "page">,
  { query, kind, limit }: ToolSearch,
): Promise<readonly Hit[]> {
  const words = wordsOf(query);
  const entries = (await entriesWith(store, words))
    .filter(({ fqdn }) => fqdn.includes(":") === (kind === "capabilities"));
  const candidates = bestCandidates(entries.flatMap(toolsOf), words);
  const hits = new Map(candidates.map((hit) => [hit.id, hit]));
  const servers = [...Map.groupBy(hits.values(), ({ server }) => server)].map(([name, tools]) => ({
    name,
    description: tools[0]?.serverDescription,
    tools: tools.map(({ id, description, schema }) => ({
      name: id.slice(name.length + 1),
      description,
      inputSchema: schema ?? { type: "object" },
    })),
  }));
  const ranked = await rankTools(query, { among: servers, limit });
  return ranked.flatMap((id) => {
    const hit = hits.get(id);
    return hit === undefined ? [] : [hitOf(hit)];
  });
}

function wordsOf(query: string): readonly string[] {
  const words = query.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter((word) => word.length > 1);
  return [...new Set(words)].slice(0, LIMITS.words);
}

/** Returns the entries with all words or, if there are none, the entries with any of them. */
async function entriesWith(
  store: Pick<HubStore, "page">,
  words: readonly string[],
): Promise<readonly StoredEntry[]> {
  if (words.length === 0) return [];
  const page = (pageWords: readonly string[], limit: number) =>
    store.page({ after: "", words: pageWords, limit });
  const all = await page(words, LIMITS.entries);
  if (all.length > 0 || words.length === 1) return all;
  const pages = await Promise.all(
    words.map((word) => page([word], Math.ceil(LIMITS.entries / words.length))),
  );
  return [...new Map(pages.flat().map((entry) => [entry.fqdn, entry])).values()];
}

/** Selects the tools with most of the words (rare words count more), because ranking is slow. */
function bestCandidates(all: readonly Candidate[], words: readonly string[]): readonly Candidate[] {
  if (all.length <= LIMITS.ranked) return all;
  const texts = all.map(({ id, description }) => `${id} ${description}`.toLowerCase());
  const scores = new Float64Array(all.length);
  for (const word of words) {
    const matches = texts.flatMap((text, at) => text.includes(word) ? [at] : []);
    const weight = Math.log(1 + all.length / (matches.length + 1));
    for (const at of matches) scores[at] = (scores[at] ?? 0) + weight;
  }
  const order = [...all.keys()].sort((a, b) => (scores[b] ?? 0) - (scores[a] ?? 0) || a - b);
  return order.slice(0, LIMITS.ranked).flatMap((at) => all[at] ?? []);
}

/** A tool with the texts for ranking. */
interface Candidate {
  readonly entry: StoredEntry;
  /** The name of its server or namespace. */
  readonly server: string;
  /** The name of the tool with its server: `weather:now`. */
  readonly id: string;
  /** Whether it represents a server whose manifest lists no tools. */
  readonly isServer: boolean;
  readonly description: string;
  readonly serverDescription: string;
  readonly schema: JsonObject | undefined;
}

function toolsOf(entry: StoredEntry): readonly Candidate[] {
  const { fqdn, manifest } = entry;
  const tools: readonly Json[] = Array.isArray(manifest.tools) ? manifest.tools : [];
  const serverDescription = textOf(manifest.description).slice(0, LIMITS.description);
  const [server = "", action] = fqdn.split(":");
  const isServer = tools.length === 0;
  return (isServer ? [{ name: "tools" }] : tools.slice(0, LIMITS.tools)).map((tool) => {
    const { name, description: text, inputSchema }: JsonObject = isObject(tool)
      ? tool
      : { name: tool };
    const toolName = action ?? textOf(name).split(":").at(-1) ?? "";
    const description = textOf(text).slice(0, LIMITS.description) || serverDescription;
    const schema = isObject(inputSchema) ? inputSchema as JsonObject : undefined; // a member of JSON is JSON
    const id = `${server}:${toolName}`;
    return { entry, server, id, isServer, description, serverDescription, schema };
  });
}

function hitOf({ entry, id, isServer, description, schema }: Candidate): Hit {
  const { fqdn, version, manifest } = entry;
  const isShort = schema !== undefined && JSON.stringify(schema).length <= LIMITS.schema;
  return {
    name: isServer ? fqdn : id,
    description,
    version,
    type: textOf(manifest.type),
    routing: textOf(manifest.routing),
    ...isShort && { input_schema: schema },
  };
}

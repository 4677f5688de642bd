/**
 * Finds tools and capabilities of a hub by words.
 *
 * @module
 */

import { isObject, type Json, type JsonObject, textOf } from "@casys/pml/registry";
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

/** What is looked for. */
export interface Wanted {
  readonly query: string;
  /** Tools of servers, or capabilities. */
  readonly kind: "tools" | "capabilities";
  readonly limit: number;
}

/** How many entries are looked at, and how much of each is told. */
const MOST = { entries: 300, words: 12, description: 300, schema: 4_000 };
const WEIGHT = { name: 4, server: 2, description: 1 };

/** Returns what fits best, the best first. */
export async function search(
  store: Pick<HubStore, "page">,
  { query, kind, limit }: Wanted,
): Promise<readonly Hit[]> {
  const words = wordsOf(query);
  const entries = await entriesWith(store, words);
  const scored = entries
    .filter(({ fqdn }) => fqdn.includes(":") === (kind === "capabilities"))
    .flatMap(hitsOf)
    .map((hit) => ({ hit, score: scoreOf(hit, words) }))
    .filter(({ score }) => score > 0);
  scored.sort((a, b) => b.score - a.score || (a.hit.name < b.hit.name ? -1 : 1));
  return scored.slice(0, limit).map(({ hit }) => hit);
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

function hitsOf({ fqdn, version, manifest }: StoredEntry): readonly Hit[] {
  const tools: readonly Json[] = Array.isArray(manifest.tools) ? manifest.tools : [];
  const base = { version, type: textOf(manifest.type), routing: textOf(manifest.routing) };
  const said = textOf(manifest.description).slice(0, MOST.description);
  if (tools.length === 0) return [{ name: fqdn, description: said, ...base }];
  return tools.map((tool) => {
    const { name, description, inputSchema } = isObject(tool) ? tool : { name: tool };
    const own = textOf(name).split(":").at(-1) ?? "";
    const schema = isObject(inputSchema) && JSON.stringify(inputSchema).length <= MOST.schema
      ? { input_schema: inputSchema }
      : {};
    return {
      name: fqdn.includes(":") ? fqdn : `${fqdn}:${own}`,
      description: textOf(description).slice(0, MOST.description) || said,
      ...base,
      ...schema,
    };
  });
}

function scoreOf({ name, description }: Hit, words: readonly string[]): number {
  const [server = "", tool = ""] = name.toLowerCase().split(":");
  const text = description.toLowerCase();
  return words.reduce(
    (sum, word) =>
      sum + (tool.includes(word) ? WEIGHT.name : 0) + (server.includes(word) ? WEIGHT.server : 0) +
      (text.includes(word) ? WEIGHT.description : 0),
    0,
  );
}

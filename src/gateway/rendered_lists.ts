/**
 * Renders lists for clients: items under the names that clients see, and pages of them. Rendered
 * items and pages are the same objects as long as their sources are, so nothing has to be
 * invalidated, and a list that did not change is neither written nor counted again.
 *
 * @module
 */

import type { Json, JsonObject } from "../core/json.ts";
import type { ListItem } from "../protocol/lists.ts";
import { withPageAddress } from "../protocol/apps.ts";
import { memoized } from "../core/memo.ts";
import { safeItem } from "../protocol/safe_text.ts";
import { longName, shownId, wireName } from "../core/tool_id.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import type { CatalogEntry } from "../search/catalog.ts";
import { partOf } from "./_pages.ts";
import { CHANGED_HINT } from "./_tool_kind.ts";

/** How many pages are cached. */
const PAGES_MAX = 64;

/** The name of a tool in a list: its own, or with that of its server, in short or in full. */
export type Naming = "own" | "prefixed" | "long";

/** A list as a client gets it. */
export interface RenderedList {
  /** The member with the items. */
  readonly name: string;
  readonly items: readonly JsonObject[];
  /** The other members of each page. */
  readonly about: JsonObject;
}

/** The lists of one gateway, rendered. */
export class RenderedLists {
  readonly #tools = memoized((_: CatalogEntry) => new Map<Naming, ToolDefinition>());
  readonly #items = memoized((_: readonly ListItem[]) => new Map<string, readonly JsonObject[]>());
  readonly #pages = new Map<string, { readonly items: readonly JsonObject[]; page: JsonObject }>();

  /** Returns a tool as clients see it: safe to show, and marked if it is not approved. */
  tool(entry: CatalogEntry, naming: Naming): ToolDefinition {
    const tools = this.#tools(entry);
    const cached = tools.get(naming);
    if (cached !== undefined) return cached;
    const tool = rendered(entry, naming);
    tools.set(naming, tool);
    return tool;
  }

  /**
   * Returns the other items of a list of a server as clients see them. `key` contains everything
   * that `rename` depends on.
   */
  items(
    items: readonly ListItem[],
    key: string,
    rename: (item: ListItem) => JsonObject,
  ): readonly JsonObject[] {
    const lists = this.#items(items);
    const cached = lists.get(key);
    if (cached !== undefined) return cached;
    const all = items.map((item) => safeItem(rename(item)));
    lists.set(key, all);
    return all;
  }

  /**
   * Returns the page of a list that a request asks for: the same object as long as its items are.
   * Throws for a cursor that PML did not create.
   */
  page({ name, items: all, about }: RenderedList, params: JsonObject): JsonObject {
    const { items, from, more } = partOf(all, params, nameOf);
    // A cursor of any length is a text of the client, and is not cached.
    const key = JSON.stringify([name, from, about, more]);
    const cached = this.#pages.get(key);
    const isSame = cached?.items.length === items.length &&
      items.every((item, at) => item === cached.items[at]);
    if (cached !== undefined && isSame) return cached.page;
    if (this.#pages.size >= PAGES_MAX) this.#pages.clear();
    const page = { [name]: items, ...more, ...about };
    this.#pages.set(key, { items, page });
    return page;
  }
}

function rendered(entry: CatalogEntry, naming: Naming): ToolDefinition {
  const { tool: listed, isChanged } = entry;
  const tool = safeItem(listed);
  const { description = "" } = tool;
  // PML's own text comes before a description that has changed.
  const marked = isChanged
    ? { ...tool, description: `[PML: ${CHANGED_HINT}] ${description}`.trimEnd() }
    : tool;
  if (naming === "own") return marked;
  const name = naming === "long" ? longName(shownId(entry)) : wireName(shownId(entry));
  return withPageAddress({ ...marked, name }, entry.server.name);
}

function nameOf({ uri, uriTemplate, name }: JsonObject): Json | undefined {
  return uri ?? uriTemplate ?? name;
}

/**
 * Renders lists for clients: items with the names that clients see, and pages of items. Caches the
 * rendered objects by their source objects, so that nothing has to be invalidated, and an unchanged
 * list is neither written nor counted again.
 *
 * @module
 */

import type { Json, JsonObject } from "../core/json.ts";
import type { ListItem } from "../protocol/lists.ts";
import { withPageAddress } from "../protocol/apps.ts";
import { memoized } from "../core/memo.ts";
import { safeItem } from "../protocol/safe_text.ts";
import { mcpName, shownId, wireName } from "../core/tool_id.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import type { CatalogEntry } from "../search/catalog.ts";
import { takePage } from "./_pages.ts";
import { CHANGED_HINT } from "./_tool_marks.ts";

/** The maximum number of cached pages. */
const PAGES_MAX = 64;

/**
 * The form of tool names in a list: the tool's own name, or with the name of the server as a prefix
 * (shortened if it is too long), or with the prefix and never shortened.
 */
export type Naming = "own" | "prefixed" | "long";

/** A list in the form that a client gets. */
export interface RenderedList {
  /** The member with the items. */
  readonly name: string;
  readonly items: readonly JsonObject[];
  /** The other members of each page. */
  readonly otherMembers: JsonObject;
}

/** Renders the lists of one gateway, and caches them. */
export class RenderedLists {
  readonly #tools = memoized((_: CatalogEntry) => new Map<Naming, ToolDefinition>());
  readonly #items = memoized((_: readonly ListItem[]) => new Map<string, readonly JsonObject[]>());
  readonly #pages = new Map<string, { readonly items: readonly JsonObject[]; page: JsonObject }>();

  /** Returns a tool in the form that clients see: with safe texts, and marked if it has changed. */
  tool(entry: CatalogEntry, naming: Naming): ToolDefinition {
    const tools = this.#tools(entry);
    const cached = tools.get(naming);
    if (cached !== undefined) return cached;
    const tool = renderTool(entry, naming);
    tools.set(naming, tool);
    return tool;
  }

  /**
   * Returns the items of a server's list, except tools, in the form that clients see. `key`
   * contains everything that `rename` depends on.
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
   * Returns the page of a list that a request asks for. Returns the same object until an item
   * changes. Throws for a cursor that PML did not create.
   */
  page({ name, items: all, otherMembers }: RenderedList, params: JsonObject): JsonObject {
    const { items, from, cursorMember } = takePage(all, params, nameOf);
    // The key does not contain the client's cursor, which may be long.
    const key = JSON.stringify([name, from, otherMembers, cursorMember]);
    const cached = this.#pages.get(key);
    const isSame = cached?.items.length === items.length &&
      items.every((item, index) => item === cached.items[index]);
    if (cached !== undefined && isSame) return cached.page;
    if (this.#pages.size >= PAGES_MAX) this.#pages.clear();
    const page = { [name]: items, ...cursorMember, ...otherMembers };
    this.#pages.set(key, { items, page });
    return page;
  }
}

function renderTool(entry: CatalogEntry, naming: Naming): ToolDefinition {
  const { tool: definition, isChanged } = entry;
  const tool = safeItem(definition);
  const { description = "" } = tool;
  // PML's own text comes before a description that has changed.
  const marked = isChanged
    ? { ...tool, description: `[PML: ${CHANGED_HINT}] ${description}`.trimEnd() }
    : tool;
  if (naming === "own") return marked;
  const name = naming === "long" ? mcpName(shownId(entry)) : wireName(shownId(entry));
  return withPageAddress({ ...marked, name }, entry.server.name);
}

function nameOf({ uri, uriTemplate, name }: JsonObject): Json | undefined {
  return uri ?? uriTemplate ?? name;
}

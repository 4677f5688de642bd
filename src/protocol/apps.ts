/**
 * MCP Apps (`io.modelcontextprotocol/ui`): the pages that servers show with the results of their
 * tools, and the tools that these pages may call.
 *
 * @module
 */

import { isObject, type Json, type JsonObject, objectOf, withoutUndefined } from "../core/json.ts";
import { PAGES_EXTENSION } from "./extension_methods.ts";
import { addressInLists } from "./placed_address.ts";

const SCHEME = "ui://";
/** The earlier key of `_meta.ui.resourceUri`. Servers send both. */
const EARLIER_PAGE_KEY = "ui/resourceUri";

/** Returns whether a client with these capabilities shows pages. */
export function showsPages({ extensions }: JsonObject): boolean {
  return isObject(objectOf(extensions)[PAGES_EXTENSION]);
}

/** Returns whether a value is the address of a page. */
export function isPage(uri: unknown): uri is string {
  return typeof uri === "string" && uri.startsWith(SCHEME);
}

/** Returns the address of the page that is shown with a tool's results. */
export function toolPage(tool: object): string | undefined {
  const meta = metaOf(tool);
  const uri = uiOf(meta).resourceUri ?? meta[EARLIER_PAGE_KEY];
  return isPage(uri) ? uri : undefined;
}

/** Returns whether a model may see and call a tool. */
export function isForModel(tool: object): boolean {
  return isVisible(tool, "model");
}

/** Returns whether the pages of a tool's server may call the tool. */
export function isForPages(tool: object): boolean {
  return isVisible(tool, "app");
}

/**
 * Returns a tool with the address that its page has in PML's lists; the same tool without a page.
 */
export function withPageAddress<T extends object>(tool: T, server: string): T {
  const { _meta } = tool as JsonObject;
  const meta = placeMeta(_meta, server);
  return meta === _meta ? tool : { ...tool, _meta: meta };
}

/**
 * Returns a result in which pages have the addresses of PML's lists: in content, messages,
 * resources and `_meta`. Returns the same result if it names no page.
 */
export function withPageAddresses<T extends object>(result: T, server: string): T {
  const { _meta, content, contents, messages, result: inner } = result as JsonObject;
  const changed = {
    _meta: placeMeta(_meta, server),
    content: mapItems(content, server, placeBlock),
    contents: mapItems(contents, server, placeResource),
    messages: mapItems(messages, server, placeMessage),
    // The state of a task contains the result of its tool.
    result: isObject(inner) ? withPageAddresses(inner as JsonObject, server) : inner,
  };
  const isSame = changed._meta === _meta && changed.content === content &&
    changed.contents === contents &&
    changed.messages === messages && changed.result === inner;
  return isSame ? result : { ...result, ...withoutUndefined(changed) };
}

function isVisible(tool: object, who: "model" | "app"): boolean {
  const { visibility } = uiOf(metaOf(tool));
  return !Array.isArray(visibility) || visibility.includes(who);
}

function metaOf(tool: object): JsonObject {
  const { _meta } = tool as JsonObject;
  return objectOf(_meta);
}

function uiOf({ ui }: JsonObject): JsonObject {
  return objectOf(ui);
}

/**
 * Changes the items of a list. Does not copy a list if no item changes, because this runs for every
 * result.
 */
function mapItems(
  list: Json | undefined,
  server: string,
  change: (item: Json, server: string) => Json,
): Json | undefined {
  if (!Array.isArray(list)) return list;
  let copy: Json[] | undefined;
  for (let index = 0; index < list.length; index++) {
    const item = change(list[index], server);
    if (item !== list[index]) (copy ??= [...list])[index] = item;
  }
  return copy ?? list;
}

function placeMeta(meta: Json | undefined, server: string): Json | undefined {
  if (!isObject(meta)) return meta;
  const { ui, [EARLIER_PAGE_KEY]: flat } = meta as JsonObject;
  const { resourceUri } = objectOf(ui);
  const isNested = isPage(resourceUri);
  if (!isNested && !isPage(flat)) return meta as JsonObject;
  return {
    ...meta as JsonObject,
    ...(isNested &&
      {
        ui: { ...objectOf(ui), resourceUri: addressInLists(SCHEME, { server, name: resourceUri }) },
      }),
    ...(isPage(flat) && { [EARLIER_PAGE_KEY]: addressInLists(SCHEME, { server, name: flat }) }),
  };
}

function placeBlock(block: Json, server: string): Json {
  const { type, resource } = objectOf(block);
  if (type === "resource_link") return placeResource(block, server);
  if (type !== "resource" || resource === undefined) return block;
  const placed = placeResource(resource, server);
  return placed === resource ? block : { ...objectOf(block), resource: placed };
}

function placeResource(resource: Json, server: string): Json {
  const { uri } = objectOf(resource);
  return isPage(uri)
    ? { ...objectOf(resource), uri: addressInLists(SCHEME, { server, name: uri }) }
    : resource;
}

function placeMessage(message: Json, server: string): Json {
  const { content } = objectOf(message);
  if (content === undefined) return message;
  const placed = placeBlock(content, server);
  return placed === content ? message : { ...objectOf(message), content: placed };
}

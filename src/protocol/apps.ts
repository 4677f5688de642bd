/**
 * MCP Apps (`io.modelcontextprotocol/ui`): the pages that servers show with the results of their
 * tools, and the tools that these pages may call.
 *
 * @module
 */

import { defined, isObject, type Json, type JsonObject, objectOf } from "../core/json.ts";
import { PAGES_EXTENSION } from "./extension_methods.ts";
import { placedAddress } from "./placed_address.ts";

const SCHEME = "ui://";
/** The earlier key of `_meta.ui.resourceUri`. Servers send both. */
const FLAT = "ui/resourceUri";

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
  const uri = uiOf(meta).resourceUri ?? meta[FLAT];
  return isPage(uri) ? uri : undefined;
}

/** Returns whether a model may see and call a tool. */
export function isForModel(tool: object): boolean {
  return isVisible(tool, "model");
}

/** Returns whether the pages of its server may call a tool. */
export function isForPages(tool: object): boolean {
  return isVisible(tool, "app");
}

/** Returns a tool with the address of its page as in PML's lists; the same tool if it has none. */
export function withPageAddress<T extends object>(tool: T, server: string): T {
  const { _meta } = tool as JsonObject;
  const meta = metaFor(_meta, server);
  return meta === _meta ? tool : { ...tool, _meta: meta };
}

/**
 * Returns a result with the addresses of pages as in PML's lists: of content, messages and
 * resources, and of the page that it names in `_meta`. Returns the same result if it has none.
 */
export function withPageAddresses<T extends object>(result: T, server: string): T {
  const { _meta, content, contents, messages, result: inner } = result as JsonObject;
  const all = {
    _meta: metaFor(_meta, server),
    content: eachFor(content, server, blockFor),
    contents: eachFor(contents, server, resourceFor),
    messages: eachFor(messages, server, messageFor),
    // The state of a task contains the result of its tool.
    result: isObject(inner) ? withPageAddresses(inner as JsonObject, server) : inner,
  };
  const isSame = all._meta === _meta && all.content === content && all.contents === contents &&
    all.messages === messages && all.result === inner;
  return isSame ? result : { ...result, ...defined(all) };
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

/** Changes the items of a list. Returns the same list if none changes: all results come here. */
function eachFor(
  list: Json | undefined,
  server: string,
  change: (item: Json, server: string) => Json,
): Json | undefined {
  if (!Array.isArray(list)) return list;
  let copy: Json[] | undefined;
  for (let at = 0; at < list.length; at++) {
    const item = change(list[at], server);
    if (item !== list[at]) (copy ??= [...list])[at] = item;
  }
  return copy ?? list;
}

function metaFor(meta: Json | undefined, server: string): Json | undefined {
  if (!isObject(meta)) return meta;
  const { ui, [FLAT]: flat } = meta as JsonObject;
  const { resourceUri } = objectOf(ui);
  const isNested = isPage(resourceUri);
  if (!isNested && !isPage(flat)) return meta as JsonObject;
  return {
    ...meta as JsonObject,
    ...(isNested &&
      {
        ui: { ...objectOf(ui), resourceUri: placedAddress(SCHEME, { server, name: resourceUri }) },
      }),
    ...(isPage(flat) && { [FLAT]: placedAddress(SCHEME, { server, name: flat }) }),
  };
}

function blockFor(block: Json, server: string): Json {
  const { type, resource } = objectOf(block);
  if (type === "resource_link") return resourceFor(block, server);
  if (type !== "resource" || resource === undefined) return block;
  const own = resourceFor(resource, server);
  return own === resource ? block : { ...objectOf(block), resource: own };
}

function resourceFor(resource: Json, server: string): Json {
  const { uri } = objectOf(resource);
  return isPage(uri)
    ? { ...objectOf(resource), uri: placedAddress(SCHEME, { server, name: uri }) }
    : resource;
}

function messageFor(message: Json, server: string): Json {
  const { content } = objectOf(message);
  if (content === undefined) return message;
  const own = blockFor(content, server);
  return own === content ? message : { ...objectOf(message), content: own };
}

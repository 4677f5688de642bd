/**
 * The blocks of a tool's result, as MCP defines them.
 *
 * @module
 */

import { isObject } from "../core/json.ts";

type JsonBlock = Readonly<Record<string, unknown>>;

/** The checks of blocks by their type. A test compares the results with the SDK. */
const BLOCK_CHECKS: Readonly<Record<string, (block: JsonBlock) => boolean>> = {
  text: ({ text }) => isText(text),
  image: isImageOrAudio,
  audio: isImageOrAudio,
  resource: ({ resource }) => isObject(resource) && isContents(resource),
  resource_link: (
    { uri, name, title = "", description = "", mimeType = "", size = 0, icons = [] },
  ) =>
    [uri, name, title, description, mimeType].every(isText) && typeof size === "number" &&
    Array.isArray(icons) && icons.every(isIcon),
};

/** Returns whether a value is a valid block of MCP. */
export function isContentBlock(block: unknown): boolean {
  if (!isObject(block)) return false;
  const { type, annotations, _meta = {} } = block;
  return isObject(_meta) && typeof type === "string" && Object.hasOwn(BLOCK_CHECKS, type) &&
    (annotations === undefined || isAnnotations(annotations)) &&
    BLOCK_CHECKS[type]?.(block) === true;
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

function isImageOrAudio({ data, mimeType }: JsonBlock): boolean {
  return isBase64(data) && isText(mimeType);
}

function isContents({ uri, mimeType = "", _meta = {}, text, blob }: JsonBlock): boolean {
  return isText(uri) && isText(mimeType) && isObject(_meta) && (isText(text) || isBase64(blob));
}

function isIcon(icon: unknown): boolean {
  if (!isObject(icon)) return false;
  const { src, mimeType = "", sizes = [], theme = "light" } = icon;
  return isText(src) && isText(mimeType) && Array.isArray(sizes) && sizes.every(isText) &&
    ["light", "dark"].includes(String(theme));
}

function isAnnotations(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { audience = [], priority = 0, lastModified } = value;
  return Array.isArray(audience) &&
    audience.every((role) => ["user", "assistant"].includes(role)) &&
    typeof priority === "number" && priority >= 0 && priority <= 1 &&
    (lastModified === undefined || isTime(lastModified));
}

function isTime(value: unknown): boolean {
  return isText(value) &&
    /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/.test(value) &&
    !Number.isNaN(Date.parse(value));
}

function isBase64(value: unknown): boolean {
  if (!isText(value)) return false;
  try {
    atob(value);
    return true;
  } catch {
    return false;
  }
}

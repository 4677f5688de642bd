/**
 * Reads values in results that have a format: dates, base64 and MIME types.
 *
 * @module
 */

const DATE_TIME =
  /^(\d{4}-\d{2}-\d{2})T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;
/** MIME types of media, by the first characters of their base64. */
const TYPES_BY_START: Readonly<Record<string, string>> = {
  iVBORw0KGgo: "image/png",
  "/9j/": "image/jpeg",
  R0lGOD: "image/gif",
  UklGR: "image/webp",
  SUQz: "audio/mpeg",
  T2dnUw: "audio/ogg",
};
const WAV = "audio/wav";
const DATA_URL = /^data:([\w.+-]+\/[\w.+-]+)?(?:;[\w.+-]+=[\w."+-]+)*;base64,/i;
/** The maximum length of the part of a data URL before its data, in characters. */
const HEAD_MAX = 200;

/** Base64 as MCP requires it, and the MIME type if the base64 came from a data URL with one. */
export interface Base64 {
  readonly data: string;
  readonly mimeType?: string | undefined;
}

/** Returns whether a value is an ISO 8601 date and time with a time zone. */
export function isDateTime(value: unknown): boolean {
  const [, date] = typeof value === "string" ? DATE_TIME.exec(value) ?? [] : [];
  if (date === undefined) return false;
  const time = Date.parse(`${date}T00:00:00Z`);
  // `Date.parse` reads a day that does not exist, such as February 30, as a day of the next month.
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(date);
}

/**
 * Returns the base64 in a value, which may be a data URL. Replaces the URL-safe alphabet by the
 * usual one. Returns undefined if the value is not base64.
 */
export function readableBase64(value: unknown): Base64 | undefined {
  if (typeof value !== "string") return undefined;
  const [head = "", mimeType] = DATA_URL.exec(value.slice(0, HEAD_MAX)) ?? [];
  const rest = head === "" ? value : value.slice(head.length);
  const data = /[-_]/.test(rest) ? rest.replaceAll("-", "+").replaceAll("_", "/") : rest;
  return isBase64(data) ? { data, mimeType } : undefined;
}

function isBase64(text: string): boolean {
  try {
    atob(text);
    return true;
  } catch {
    return false;
  }
}

/** Returns the MIME type of media by its first bytes; undefined if it is not known. */
export function mimeTypeIn(base64: string, kind: "image" | "audio"): string | undefined {
  const [, type] = Object.entries(TYPES_BY_START).find(([start]) => base64.startsWith(start)) ?? [];
  // WebP images and WAV audio both begin with "RIFF".
  const knownType = type === "image/webp" && kind === "audio" ? WAV : type;
  return knownType?.startsWith(`${kind}/`) ? knownType : undefined;
}

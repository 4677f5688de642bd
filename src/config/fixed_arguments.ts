/**
 * The arguments that a definition fixes for a tool: replaces their variables, and prepares them to
 * be shown to a user.
 *
 * @module
 */

import { isExactNumber } from "../core/exact_number.ts";
import type { Json, JsonObject } from "../core/json.ts";
import { withoutSecrets } from "../core/secret_words.ts";

/** Returns fixed arguments with their texts filled in, by the path of their names. */
export function sentArguments(
  written: JsonObject,
  filled: Readonly<Record<string, string>>,
): JsonObject {
  return mapTexts(written, "", (text, path) => filled[path] ?? text) as JsonObject;
}

/**
 * Returns fixed arguments as the user sees them. Registers each text that looks like a secret, and
 * hides it if the user's own file fixes the arguments.
 */
export function shownArguments(
  written: JsonObject,
  isOfUser: boolean,
  register: (value: string) => void,
): JsonObject {
  return mapTexts(written, "", (text, path) => {
    const safe = withoutSecrets(path, text);
    const hasVariable = /\$\{\w+/.test(text);
    if (safe === text || hasVariable) return text;
    // The file itself contains a secret.
    register(text);
    return isOfUser ? safe : text;
  }) as JsonObject;
}

/** Returns the strings in arguments, by the path of their names. */
export function argumentTexts(written: JsonObject): Readonly<Record<string, string>> {
  const texts: [string, string][] = [];
  mapTexts(written, "", (text, path) => {
    texts.push([path, text]);
    return text;
  });
  return Object.fromEntries(texts);
}

function mapTexts(value: Json, path: string, map: (text: string, path: string) => string): Json {
  if (typeof value === "string") return map(value, path);
  if (typeof value !== "object" || value === null || isExactNumber(value)) return value;
  const pathOf = (key: string | number) => path === "" ? `${key}` : `${path}.${key}`;
  if (Array.isArray(value)) return value.map((item, key) => mapTexts(item, pathOf(key), map));
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [key, mapTexts(member, pathOf(key), map)]),
  );
}

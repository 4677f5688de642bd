/**
 * The arguments that a definition fixes for a tool: replaces their variables, and prepares them to
 * be shown to a user.
 *
 * @module
 */

import { isExactNumber } from "../core/exact_number.ts";
import type { Json, JsonObject } from "../core/json.ts";
import { withoutSecrets } from "../core/secret_words.ts";
import type { FixedOptions, FixedValues } from "./keys.ts";

/**
 * Returns the fixed arguments of a tool with variables replaced. Throws KEY_MISSING if a variable
 * is not set.
 */
export function fixedArguments(
  written: JsonObject,
  { server, keys, isOfUser, register }: FixedOptions,
): FixedValues {
  const filled = keys.filled({ arguments: argumentTexts(written) }, server).arguments;
  const visibleValue = replaced(written, "", (text, at) => {
    const safe = withoutSecrets(at, text);
    const isNamed = /\$\{\w+/.test(text);
    if (safe === text || isNamed) return text;
    // The file itself contains a secret.
    register(text);
    return isOfUser ? safe : text;
  });
  const sent = replaced(written, "", (text, at) => filled[at] ?? text);
  return { sent: sent as JsonObject, shown: visibleValue as JsonObject };
}

/** Returns the strings in arguments, by the path of their names. */
export function argumentTexts(written: JsonObject): Readonly<Record<string, string>> {
  const texts: [string, string][] = [];
  replaced(written, "", (text, at) => {
    texts.push([at, text]);
    return text;
  });
  return Object.fromEntries(texts);
}

function replaced(value: Json, at: string, by: (text: string, at: string) => string): Json {
  if (typeof value === "string") return by(value, at);
  if (typeof value !== "object" || value === null || isExactNumber(value)) return value;
  const inner = (key: string | number) => at === "" ? `${key}` : `${at}.${key}`;
  if (Array.isArray(value)) return value.map((one, key) => replaced(one, inner(key), by));
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [key, replaced(one, inner(key), by)]),
  );
}

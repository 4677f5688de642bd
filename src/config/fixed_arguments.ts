/**
 * The arguments that a definition fixes for a tool: where they name variables, what they are filled
 * in with, and how a person is shown them.
 *
 * @module
 */

import type { Json, JsonObject } from "../core/json.ts";
import { withoutSecrets } from "./_secret_words.ts";
import type { Keys } from "./keys.ts";

/** What a tool is sent, and the same as a person is shown it. */
export interface Fixed {
  /** With the values of variables. */
  readonly sent: JsonObject;
  /** With the names of variables, and without what looks like a secret. */
  readonly shown: JsonObject;
}

/** What fixed arguments need. */
export interface FixedOptions {
  /** The name of the server. */
  readonly server: string;
  readonly keys: Pick<Keys, "filled">;
  /** Has a value taken out of every text from now on. */
  readonly register: (value: string) => void;
}

/** Fills in the arguments that are fixed for a tool; throws `KEY_MISSING` where a variable is not set. */
export function fixedArguments(
  written: JsonObject,
  { server, keys, register }: FixedOptions,
): Fixed {
  const filled = keys.filled({ arguments: textsIn(written) }, server).arguments;
  const shown = replaced(written, "", (text, at) => {
    const safe = withoutSecrets(at, text);
    const isNamed = /\$\{\w+/.test(text);
    if (safe === text || isNamed) return text;
    // It stands in the file itself.
    register(text);
    return safe;
  });
  const sent = replaced(written, "", (text, at) => filled[at] ?? text);
  return { sent: sent as JsonObject, shown: shown as JsonObject };
}

/** Gives the texts of arguments, by the path of their names. */
export function textsIn(written: JsonObject): Readonly<Record<string, string>> {
  const texts: [string, string][] = [];
  replaced(written, "", (text, at) => {
    texts.push([at, text]);
    return text;
  });
  return Object.fromEntries(texts);
}

function replaced(value: Json, at: string, by: (text: string, at: string) => string): Json {
  if (typeof value === "string") return by(value, at);
  if (typeof value !== "object" || value === null) return value;
  const inner = (key: string | number) => at === "" ? `${key}` : `${at}.${key}`;
  if (Array.isArray(value)) return value.map((one, key) => replaced(one, inner(key), by));
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [key, replaced(one, inner(key), by)]),
  );
}

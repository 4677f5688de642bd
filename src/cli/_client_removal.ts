/**
 * Removes servers from the text of a client's file. No other value and no comment changes.
 *
 * @module
 */

import { isDeepStrictEqual } from "node:util";
import { parseToml } from "../config/clients.ts";
import { toJson, withEntry, withoutListItems } from "../config/yaml_text.ts";
import { withValue } from "./_client_file.ts";
import { uneditable } from "./_files.ts";

/** The path of keys of a server in a file. */
export type ServerKey = readonly string[];

/**
 * Returns the text without these servers. Throws an error that names `path` if the edit would change
 * another value.
 */
export async function withoutServers(
  text: string,
  path: string,
  keys: readonly ServerKey[],
): Promise<string> {
  if (/\.ya?ml$/.test(path)) {
    const [section = ""] = keys[0] ?? [];
    const names = keys.map((key) => key.at(-1) ?? "");
    return await withoutListItems(text, { path, section, names });
  }
  const isToml = path.endsWith(".toml");
  let after = text;
  for (const key of keys) {
    const [first = "", ...rest] = key;
    after = isToml
      ? await withoutTable(after, path, key)
      : await withValue(after, { path, at: [first, ...rest], entry: undefined });
  }
  return after;
}

/** Returns a TOML text without a table and the tables in it. */
async function withoutTable(text: string, path: string, key: ServerKey): Promise<string> {
  const expected = withEntry(await parseToml(text, path), { at: key, entry: undefined });
  const names = key.map(escapeName).map((name) => `(?:${name}|"${name}"|'${name}')`);
  const header = new RegExp(`^\\s*\\[{1,2}\\s*${names.join("\\s*\\.\\s*")}\\s*[.\\]]`);
  let isInTable = false;
  const lines = text.split(/(?<=\n)/).filter((line) => {
    if (/^\s*\[/.test(line)) isInTable = header.test(line);
    return !isInTable;
  });
  const after = lines.join("");
  const now = await parseToml(after, path).catch(() => undefined);
  // Ignores empty objects, because removing the last table of a section also removes the section.
  const isSame = isDeepStrictEqual(withoutEmptyObjects(now), withoutEmptyObjects(toJson(expected)));
  if (isSame) return after;
  throw uneditable(path);
}

function withoutEmptyObjects(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value ?? {}, (_, member) => {
      const isEmpty = typeof member === "object" && member !== null &&
        Object.keys(member).length === 0;
      return isEmpty ? undefined : member;
    }) ?? "{}",
  );
}

function escapeName(text: string): string {
  return text.replace(/[^\w-]/g, "\\$&");
}

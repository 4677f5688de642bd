/**
 * Sets values in the text of a YAML file. Its comments and its order stay, and so do its line ends
 * and a byte order mark; how far lines are indented and where blanks and comments stand may change.
 *
 * @module
 */

import { isDeepStrictEqual } from "node:util";
import type { Document, Node } from "yaml";
import { isObject } from "../core/json.ts";
import { refused } from "./_files.ts";

/** What is to stand at a key; nothing takes the key away. */
export interface Setting {
  readonly at: readonly [section: string, ...names: string[]];
  readonly entry: unknown;
}

/** Gives the text with these values, and no other change of what it says; `path` is for errors. */
export async function yamlWith(
  text: string,
  { path, settings }: { readonly path: string; readonly settings: readonly Setting[] },
): Promise<string> {
  const yaml = await import("yaml");
  const mark = text.startsWith("\uFEFF") ? "\uFEFF" : "";
  const before = text.slice(mark.length).replaceAll("\r\n", "\n");
  try {
    const document = yaml.parseDocument(before, { version: "1.2", logLevel: "error" });
    const wanted: unknown = yaml.parse(before) ?? {};
    for (const { at, entry } of settings) {
      const known = document.getIn(at, true);
      // The comment behind a value goes with the value.
      if (yaml.isScalar(known) && entry !== undefined && Object(entry) !== entry) {
        known.value = entry;
      } else set(document, { at, entry });
      put(wanted, { at, entry });
    }
    const after = document.toString({ lineWidth: 0 });
    if (!isDeepStrictEqual(plain(yaml.parse(after)), plain(wanted))) {
      throw refused(path, "it cannot be edited without another change");
    }
    return mark + (/^[^\n]*\r\n/.test(text) ? after.replaceAll("\n", "\r\n") : after);
  } catch (error) {
    throw refused(path, error);
  }
}

function set(document: Document, { at, entry }: Setting): void {
  if (entry === undefined) return void (document.hasIn(at) && document.deleteIn(at));
  // A section whose keys are all comments is nothing, in which no value can be set.
  for (let depth = 1; depth < at.length; depth++) {
    const above = at.slice(0, depth);
    const empty = document.getIn(above, true);
    if (document.getIn(above) !== null) continue;
    const section = document.createNode({});
    section.commentBefore = isNode(empty) ? empty.comment ?? empty.commentBefore ?? null : null;
    document.setIn(above, section);
  }
  document.setIn(at, document.createNode(entry));
}

function isNode(value: unknown): value is Node {
  return isObject(value);
}

/** Puts a value into plain data; what is in the way is left, and the comparison tells. */
function put(data: unknown, { at: [first, ...rest], entry }: {
  readonly at: readonly string[];
  readonly entry: unknown;
}): void {
  if (first === undefined || !isObject(data)) return;
  if (rest.length === 0) data[first] = entry;
  else put(data[first] ??= {}, { at: rest, entry });
}

/** Gives a value as JSON has it: a key with nothing is none. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value) ?? "null");
}

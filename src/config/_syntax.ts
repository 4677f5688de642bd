/**
 * Reads JSON with comments, and YAML, into plain values that know their places.
 *
 * @module
 */

import type { Node, ParseError } from "jsonc-parser";
import { visible } from "../core/json.ts";

/** A path of keys and indices. */
export type Path = (string | number)[];

/** A text that was read: its value, and where a part of it begins. */
export interface Syntax {
  readonly value: unknown;
  readonly offsetOf: (path: Path) => number | undefined;
}

/** Notes what is wrong at an offset of a text. */
export type Note = (
  offset: number,
  said: { readonly path?: Path; readonly found: string; readonly wanted: string },
) => void;

/** More complaints of a parser than these tell nothing new. */
const MOST = 20;

/** Reads JSON with comments and trailing commas, unless it has to be strict, or notes why not. */
export async function parseJsonc(
  text: string,
  note: Note,
  { strict = false }: { readonly strict?: boolean } = {},
): Promise<Syntax | undefined> {
  const jsonc = await import("jsonc-parser");
  const errors: ParseError[] = [];
  const options = { allowTrailingComma: !strict, disallowComments: strict };
  const root = jsonc.parseTree(text, errors, options);
  for (const { error, offset } of errors.slice(0, MOST)) {
    const { path } = jsonc.getLocation(text, offset);
    const why = jsonc.printParseErrorCode(error).replace(/\B[A-Z]/g, " $&").toLowerCase();
    note(offset, { path, found: `what is no JSON (${why})`, wanted: "JSON with comments" });
  }
  if (root === undefined || errors.length > 0) return undefined;
  for (const twin of twins(root).slice(0, MOST)) {
    const path = jsonc.getNodePath(twin);
    note(twin.offset, { path, found: "the key a second time", wanted: "each key once" });
  }
  return {
    value: jsonc.getNodeValue(root),
    offsetOf: (path) => jsonc.findNodeAtLocation(root, path)?.offset,
  };
}

/** Reads YAML 1.2, or notes why not. */
export async function parseYaml(text: string, note: Note): Promise<Syntax | undefined> {
  const yaml = await import("yaml");
  // Below this log level a second document is dropped without a word.
  const options = { version: "1.2", prettyErrors: false, logLevel: "error" } as const;
  const document = yaml.parseDocument(text, options);
  const wrong = [...document.errors, ...document.warnings];
  for (const { code, message, pos: [offset] } of wrong.slice(0, MOST)) {
    const twin = code === "DUPLICATE_KEY" ? /^[\w$-]*/.exec(text.slice(offset)) : null;
    const found = `what is no YAML (${visible(message, 120)})`;
    note(offset, { path: [...twin ?? []], found, wanted: "YAML 1.2" });
  }
  // An alias can spell a key that is there already, and so take its rules away.
  yaml.visit(document, {
    Alias: (_, { range }) => {
      note(range?.[0] ?? 0, { found: "an alias", wanted: "the value itself" });
      return yaml.visit.BREAK;
    },
  });
  return wrong.length > 0 ? undefined : {
    value: document.toJS() ?? {},
    offsetOf: (path) => {
      const node = document.getIn(path, true);
      return yaml.isNode(node) ? node.range?.[0] : undefined;
    },
  };
}

/** Finds the keys that come twice, and those that a record would drop without a word. */
function twins(node: Node): readonly Node[] {
  const seen = new Set(["__proto__"]);
  return (node.children ?? []).flatMap((child) => {
    const [key] = child.type === "property" ? child.children ?? [] : [];
    const again = key !== undefined && seen.size === seen.add(key.value).size;
    return again ? [key, ...twins(child)] : twins(child);
  });
}

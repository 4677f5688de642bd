/**
 * Parses JSON with comments, and YAML, to plain values with their positions.
 *
 * @module
 */

import type { Node, ParseError } from "jsonc-parser";
import type { Document, Scalar } from "./yaml_main.ts";
import { placeAt } from "../core/errors.ts";
import { exactNumber, isChangedByParsing, isNumberText } from "../core/exact_number.ts";
import { visible } from "../core/json.ts";
import type { Path } from "../core/value_schema.ts";
import { loadYaml } from "./yaml.ts";

/** A parsed text: its value with JavaScript numbers, and functions that look up its parts. */
export interface Syntax {
  readonly value: unknown;
  readonly offsetOf: (path: Path) => number | undefined;
  /** Returns the value of a part in which numbers keep their text. */
  readonly exactAt: (path: Path) => unknown;
}

/** Reports a problem at an offset of a text. */
export type ReportAt = (
  offset: number,
  details: { readonly path?: Path; readonly found: string; readonly wanted: string },
) => void;

/** The maximum number of problems of a parser that are reported. */
const PROBLEMS_MAX = 20;

/** Parses JSON with comments. Reports problems and returns undefined if it is not valid. */
export async function parseJsonc(text: string, note: ReportAt): Promise<Syntax | undefined> {
  const jsonc = await import("jsonc-parser");
  const errors: ParseError[] = [];
  const root = jsonc.parseTree(text, errors, { allowTrailingComma: true });
  for (const { error, offset } of distinctProblems(errors, text)) {
    const { path } = jsonc.getLocation(text, offset);
    const why = jsonc.printParseErrorCode(error).replace(/\B[A-Z]/g, " $&").toLowerCase();
    note(offset, { path, found: `invalid JSON (${why})`, wanted: "JSON with comments" });
  }
  if (root === undefined || errors.length > 0) return undefined;
  for (const { first, second } of duplicateKeys(root).slice(0, PROBLEMS_MAX)) {
    const path = jsonc.getNodePath(second);
    note(second.offset, { path, ...duplicateKeyProblem(text, first.offset, second.offset) });
  }
  return {
    value: jsonc.getNodeValue(root),
    offsetOf: (path) => jsonc.findNodeAtLocation(root, path)?.offset,
    exactAt: (path) => {
      const node = jsonc.findNodeAtLocation(root, path);
      return node && exactValue(node, text);
    },
  };
}

/** Returns the value of a node in which numbers keep their text. */
function exactValue({ type, value, offset, length, children = [] }: Node, text: string): unknown {
  switch (type) {
    case "number":
      return exactOf(value, text.slice(offset, offset + length));
    case "array":
      return children.map((child) => exactValue(child, text));
    case "object":
      return Object.fromEntries(
        children.map(({ children: [key, member] = [] }) => [
          key?.value,
          member && exactValue(member, text),
        ]),
      );
    default:
      return value;
  }
}

/** Returns the number of a text: exact if parsing would change its text. */
function exactOf(value: unknown, text: string): unknown {
  return isNumberText(text) && isChangedByParsing(text) ? exactNumber(text) : value;
}

/** Parses YAML 1.2. Reports problems and returns undefined if it is not valid. */
export async function parseYaml(text: string, note: ReportAt): Promise<Syntax | undefined> {
  const yaml = await loadYaml();
  // With a lower log level the library ignores a second document silently.
  const options = { version: "1.2", prettyErrors: false, logLevel: "error" } as const;
  const document = yaml.parseDocument(text, options);
  const problems = [...document.errors, ...document.warnings]
    .map(({ code, message, pos: [offset] }) => ({ code, message, offset }));
  for (const { code, message, offset } of distinctProblems(problems, text)) {
    const [key = ""] = code === "DUPLICATE_KEY" ? /^[\w$-]*/.exec(text.slice(offset)) ?? [] : [];
    if (key === "") {
      const found = `invalid YAML (${visible(message, 120)})`;
      note(offset, { path: [], found, wanted: "YAML 1.2" });
    } else {
      let first = offset;
      yaml.visit(document, {
        Map: (_, { items }) => {
          const keys = items.map((item) => item.key as Scalar);
          const second = keys.find(({ range }) => range?.[0] === offset);
          const sameKey = second && keys.find(({ value }) => value === second.value);
          first = sameKey?.range?.[0] ?? first;
        },
      });
      note(offset, { path: [key], ...duplicateKeyProblem(text, first, offset) });
    }
  }
  // The library takes `1` and `"1"` for two keys, but in the value they are one.
  const doubles = problems.length > 0 ? [] : keysOfOtherTypes(yaml, document);
  for (const { first, second, key } of doubles.slice(0, PROBLEMS_MAX)) {
    note(second, { path: [key], ...duplicateKeyProblem(text, first, second) });
  }
  // An alias can spell a key that exists already, and so replace its rules.
  yaml.visit(document, {
    Alias: (_, { range }) => {
      note(range?.[0] ?? 0, { found: "an alias", wanted: "the value itself" });
      return yaml.visit.BREAK;
    },
  });
  return problems.length > 0 ? undefined : {
    value: document.toJS() ?? {},
    offsetOf: (path) => {
      const node = document.getIn(path, true);
      return yaml.isNode(node) ? node.range?.[0] : undefined;
    },
    exactAt: (path) => {
      const node = document.getIn(path, true);
      if (!yaml.isNode(node)) return undefined;
      const copy = node.clone() as Node & typeof node;
      const visitor = {
        Scalar: (_: unknown, scalar: { value: unknown; source?: string }) => {
          if (typeof scalar.value !== "number") return;
          scalar.value = exactOf(scalar.value, scalar.source ?? "");
        },
      };
      yaml.visit(copy, visitor);
      return copy.toJS(document);
    },
  };
}

/** Returns the offsets of the keys of YAML that are equal as text, such as `1` and `"1"`. */
function keysOfOtherTypes(
  yaml: Awaited<ReturnType<typeof loadYaml>>,
  document: Document,
): readonly { readonly first: number; readonly second: number; readonly key: string }[] {
  const doubles: { first: number; second: number; key: string }[] = [];
  yaml.visit(document, {
    Map: (_, map) => {
      const offsets = new Map<string, number>();
      for (const { key: node } of map.items) {
        // As in `toJS()`: null becomes an empty key.
        const key = String((yaml.isScalar(node) ? node.value : node) ?? "");
        const [second = 0] = yaml.isNode(node) ? node.range ?? [] : [];
        const first = offsets.get(key);
        if (first === undefined) offsets.set(key, second);
        else doubles.push({ first, second, key });
      }
    },
  });
  return doubles;
}

/**
 * Returns the first problem at each offset. Leaves out a problem at the end of the text if another
 * problem comes before it, because it may be only a consequence.
 */
function distinctProblems<T extends { readonly offset: number }>(
  all: readonly T[],
  text: string,
): T[] {
  return all.filter(({ offset }, index) =>
    index === 0 || offset < text.length && offset !== all[index - 1]?.offset
  ).slice(0, PROBLEMS_MAX);
}

/** Describes the problem that an object has a key twice. */
function duplicateKeyProblem(text: string, first: number, second: number) {
  const lines = `lines ${placeAt(text, first).line} and ${placeAt(text, second).line}`;
  return { found: `the key twice (${lines})`, wanted: "each key once" };
}

/** Returns the keys that occur twice. */
function duplicateKeys(
  node: Node,
): readonly { readonly first: Node; readonly second: Node }[] {
  const keyNodes = new Map<unknown, Node>();
  return (node.children ?? []).flatMap((child) => {
    const [key] = child.type === "property" ? child.children ?? [] : [];
    const first = key && keyNodes.get(key.value);
    if (key !== undefined && first === undefined) keyNodes.set(key.value, key);
    return key && first ? [{ first, second: key }, ...duplicateKeys(child)] : duplicateKeys(child);
  });
}

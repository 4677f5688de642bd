/**
 * Trains the word vectors that ship with PML. README.md in this folder describes the data, their
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
import { project, seededRandom, shuffle } from "./_linear.ts";
import { TEACHER_WIDTH, teacherVectors } from "./_teacher.ts";
import {
  DIMENSIONS,
  type Lessons,
  type Pair,
  Training,
  type TrainingOptions,
} from "./_training.ts";
import { makeVocabulary, type Vocabulary } from "./_vocabulary.ts";

const OPTIONS: TrainingOptions = {
  epochs: 3,
  rate: 0.05,
  toolRounds: 10,
  teacherRounds: 8,
  teacherSharpness: 1 / 0.1,
  seed: 7,
};
/** The number of definitions for which the teacher computes vectors. */
const TEACHER_DEFINITIONS = 8_000;
/** The number of frequent words; definitions of rarer words are left out. */
const FREQUENT_WORDS = 60_000;
const TEACHER_DIMENSIONS = 96;
const MAX_WORDS = 40;

/** Collects different texts, with the numbers of their words. */
class Texts {
  readonly all: string[] = [];
  readonly numbers: Int32Array[] = [];
  readonly #vocabulary: Vocabulary;
  readonly #indices = new Map<string, number>();

  constructor(vocabulary: Vocabulary) {
    this.#vocabulary = vocabulary;
  }

  /** Adds a text. Returns its number; undefined if no word of the text has a vector. */
  add(text: string): number | undefined {
    const index = this.#indices.get(text);
    if (index !== undefined) return index;
    const numbers = this.#vocabulary.numbersIn(text).slice(0, MAX_WORDS);
    if (numbers.length === 0) return undefined;
    this.#indices.set(text, this.all.length);
    this.numbers.push(numbers);
    return this.all.push(text) - 1;
  }

  /** Adds texts. Returns the pairs of different texts with words. */
  pairs(texts: readonly (readonly [one: string, other: string])[]): readonly Pair[] {
    return texts.flatMap(([one, other]) => {
      const [left, right] = [this.add(one), this.add(other)];
      return left === undefined || right === undefined || left === right
        ? []
        : [[left, right] as const];
    });
  }
}

/** Returns pairs of texts with one meaning: its words, its definition and its examples. */
function pairsOfMeaning({ words, definition, examples }: Meaning): [string, string][] {
  return [
    [words.join(" "), definition],
    ...examples.slice(0, 1).map((example): [string, string] => [example, definition]),
    ...words.slice(1).map((word, at): [string, string] => [words[at] ?? "", word]),
  ];
}

/** Returns pairs of texts about a tool: its name, and the parts of its description. */
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

/** Leaves out rare words of meanings, and meanings with only rare words. */
function frequentMeanings(
  meanings: readonly Meaning[],
  { words }: StartVectors,
): readonly Meaning[] {
  const frequentWords = new Set(words.slice(0, FREQUENT_WORDS));
  const isKnown = (word: string) =>
    word.toLowerCase().split(/[ -]/).every((part) => frequentWords.has(part));
  return meanings.map((meaning) => ({ ...meaning, words: meaning.words.filter(isKnown) }))
    .filter(({ words }) => words.length > 0);
}

async function lessonsOf(
  { texts, tools, meanings }: {
    readonly texts: Texts;
    readonly tools: readonly ToolTexts[];
    readonly meanings: readonly Meaning[];
  },
  teacher: Parameters<typeof teacherVectors>[1],
): Promise<Lessons> {
  const random = seededRandom(OPTIONS.seed);
  const pairs = texts.pairs(meanings.flatMap(pairsOfMeaning));
  const toolPairs = texts.pairs(tools.flatMap(pairsOfTool));
  const definitions = shuffle(meanings, random).slice(0, TEACHER_DEFINITIONS);
  const teacherTexts = [
    ...tools.flatMap(({ fullName, description, firstSentence }) => [
      fullName,
      description,
      firstSentence,
    ]),
    ...definitions.map(({ definition }) => definition),
  ].flatMap((text) => texts.add(text) ?? []);
  const numbers = [...new Set(teacherTexts)];
  const rows = await teacherVectors(numbers.map((at) => texts.all[at] ?? ""), teacher);
  return {
    ...{ texts: texts.numbers, pairs, toolPairs, teacherTexts: numbers },
    teacherWidth: TEACHER_DIMENSIONS,
    teacher: project(rows, { width: TEACHER_WIDTH, directions: TEACHER_DIMENSIONS, random }),
  };
}

/** Returns the content of the file with the vectors, common words first. */
function vectorsFile({ words, vectors, isCommon }: Vocabulary): string {
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
  const vocabulary = makeVocabulary({ tools, meanings, start }, seededRandom(OPTIONS.seed));
  console.error(`${vocabulary.words.length} words, ${meanings.length} meanings`);
  const lessons = await lessonsOf(
    { texts: new Texts(vocabulary), tools, meanings: frequentMeanings(meanings, start) },
    { packages: resolve(packages), model: resolve(join(data, "model", "use-lite-en")), cache },
  );
  new Training(vocabulary.vectors, lessons, OPTIONS)
    .run((epoch, batches) => console.error(`Epoch ${epoch + 1}: ${batches} batches`));
  const text = vectorsFile(vocabulary);
  writeFileSync(out, text);
  console.error(`${text.length} bytes, SHA-256 ${sha256(text)}`);
  return 0;
}

if (import.meta.main) Deno.exitCode = await main();

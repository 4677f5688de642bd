/**
 * A mutant: one guard taken away. Finds it by its text, wherever its file lies now.
 *
 * @module
 */

import { basename } from "node:path";

/** One guard, how it is taken away, and the test that notices. */
export interface Mutant {
  readonly name: string;
  /** What the guard holds, in one sentence. */
  readonly guard: string;
  /** The name of its file. It decides only where the text stands in several files. */
  readonly file: string;
  /** The text of the guard. It must stand in one place; white space does not count. */
  readonly find: string;
  /** What stands there without the guard. */
  readonly put: string;
  /** The file of the test. If it has moved, the test is found by its name. */
  readonly test: string;
  /** The name of the test. */
  readonly filter: string;
  /** What a failure says that is no failed assertion, and is the right one all the same. */
  readonly fails?: RegExp;
  /** Set where another guard holds the same, so that the test stays green without this one. */
  readonly isTwice?: true;
}

/** A place in a file. */
export interface Place {
  readonly path: string;
  readonly start: number;
  readonly end: number;
}

/** The sources that a mutant may be in, or tests: texts by path. */
export type Texts = ReadonlyMap<string, string>;

/** Finds the guard of a mutant. Returns why not if its text is not in exactly one place. */
export function findGuard({ find, file }: Mutant, sources: Texts): Place | string {
  const words = find.trim().split(/\s+/).map((word) =>
    word.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")
  );
  const pattern = new RegExp(words.join("\\s+"), "g");
  const all = [...sources].flatMap(([path, text]) =>
    [...text.matchAll(pattern)].map((match): Place => ({
      path,
      start: match.index,
      end: match.index + match[0].length,
    }))
  );
  const named = all.filter(({ path }) => basename(path) === basename(file));
  const [place, ...more] = all.length > 1 ? named : all;
  if (place !== undefined && more.length === 0) return place;
  return place === undefined && all.length === 0
    ? "its text is in no file"
    : `its text is in ${all.length} places, and ${named.length} of them in ${basename(file)}`;
}

/** Finds the file of a mutant's test: where it was, else a file of its name, else by the test. */
export function findTest({ test, filter }: Mutant, tests: Texts): string | undefined {
  if (tests.has(test)) return test;
  const paths = [...tests.keys()];
  return paths.find((path) => basename(path) === basename(test)) ??
    paths.find((path) => tests.get(path)?.includes(filter));
}

/** Returns a text in which the guard is taken away. */
export function mutated(text: string, { start, end }: Place, put: string): string {
  return text.slice(0, start) + put + text.slice(end);
}

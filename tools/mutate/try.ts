/**
 * Tries a mutant: whether its test turns red without the guard, and for the right reason.
 *
 * @module
 */

import { findGuard, findTest, type Mutant, mutated, type Place } from "./mutant.ts";
import type { Tree } from "./tree.ts";

/** What became of a mutant. Only the first two are good. */
export type Fate =
  /** The test failed as it should. */
  | "red"
  /** The test is green, as the table says: another guard holds the same. */
  | "held twice"
  /** The test is green without the guard. */
  | "survives"
  /** The guard is not where the table says. */
  | "stale"
  /** Without the guard the file is no program any more, so that a red test says nothing. */
  | "does not load"
  /** There is no test of this name, or it fails with the guard as well. */
  | "no test"
  /** The test fails otherwise than by an assertion. */
  | "odd";

/** A mutant that was tried. */
export interface Tried {
  readonly mutant: Mutant;
  readonly fate: Fate;
  /** Where the guard stands now. */
  readonly path?: string;
  readonly test?: string;
  readonly why?: string;
}

const TEST_MS = 240_000;
/** A test with its failure, as Deno writes it for machines. */
const CASE = /<testcase name="[^"]*"[^>]*?(?:\/>|>(.*?)<\/testcase>)/gs;
/** What the compiler says of names that nobody uses once a guard is gone. */
const UNUSED = /TS(?:6133|6138|6192|6196|6198|7027|7028)\b/;

/** Tries mutants in one copy of the project, one after the other. */
export class Trial {
  readonly #tree: Tree;
  readonly #green = new Map<string, Promise<string | undefined>>();

  /** Takes a copy that nobody else changes. */
  constructor(tree: Tree) {
    this.#tree = tree;
  }

  /** Takes the guard of a mutant away, runs its test, and puts the guard back. */
  async of(mutant: Mutant): Promise<Tried> {
    const place = findGuard(mutant, this.#tree.sources);
    if (typeof place === "string") return { mutant, fate: "stale", why: place };
    const { path } = place;
    const test = findTest(mutant, this.#tree.tests);
    if (test === undefined) return { mutant, fate: "no test", path, why: "nothing has its name" };
    const wrong = await this.#isGreen(test, mutant.filter);
    if (wrong !== undefined) return { mutant, fate: "no test", path, test, why: wrong };
    const text = this.#tree.sources.get(path) ?? "";
    try {
      await this.#tree.write(path, mutated(text, place, mutant.put));
      return { mutant, path, test, ...await this.#without(mutant, { place, test }) };
    } finally {
      await this.#tree.write(path, text);
      await this.#bundle(path);
    }
  }

  async #without(
    mutant: Mutant,
    { place: { path }, test }: { readonly place: Place; readonly test: string },
  ): Promise<Pick<Tried, "fate" | "why">> {
    const broken = await this.#check(path);
    if (broken !== undefined) return { fate: "does not load", why: broken };
    const bundled = await this.#bundle(path);
    if (bundled !== undefined) return { fate: "does not load", why: bundled };
    const failures = await this.#run(test, mutant.filter);
    if (typeof failures === "string") return { fate: "odd", why: failures };
    if (failures.length === 0) return { fate: mutant.isTwice ? "held twice" : "survives" };
    const isRight = (failure: string) =>
      failure.includes("AssertionError") || mutant.fails?.test(failure) === true;
    return failures.some(isRight) ? { fate: "red" } : { fate: "odd", why: failures.join("\n") };
  }

  /** Returns why a test is not green with all guards in their places. */
  #isGreen(test: string, filter: string): Promise<string | undefined> {
    const key = `${test} ${filter}`;
    const known = this.#green.get(key) ??
      this.#run(test, filter).then((failures) =>
        typeof failures === "string"
          ? failures
          : failures.length === 0
          ? undefined
          : `it fails with the guard as well:\n${failures.join("\n")}`
      );
    this.#green.set(key, known);
    return known;
  }

  /** Returns what the compiler finds in a file, but for names that nobody uses. */
  async #check(path: string): Promise<string | undefined> {
    const { code, output } = await this.#tree.deno(["check", path], TEST_MS);
    if (code === 0) return undefined;
    const errors = output.match(/TS\d+ \[ERROR\].*/g) ?? [];
    if (errors.length > 0 && errors.every((error) => UNUSED.test(error))) return undefined;
    return output;
  }

  /** Bundles anew what runs in a sandbox child, if the file is a part of that. */
  async #bundle(path: string): Promise<string | undefined> {
    if (!/\/boot\/|^builtin\//.test(path)) return undefined;
    const { code, output } = await this.#tree.deno(["run", "-A", "tools/assets.ts"], TEST_MS);
    return code === 0 ? undefined : output;
  }

  /** Runs tests; returns what failed of them, or why none ran. */
  async #run(test: string, filter: string): Promise<readonly string[] | string> {
    const report = await Deno.makeTempFile({ suffix: ".xml" });
    try {
      const args = ["test", "-A", "--no-check", `--junit-path=${report}`, "--filter", filter, test];
      const { code, output } = await this.#tree.deno(args, TEST_MS);
      if (code === undefined) return `it took longer than ${TEST_MS} ms`;
      const cases = [...(await Deno.readTextFile(report)).matchAll(CASE)].map(([, said]) => said);
      const ran = cases.filter((said) => !said?.includes("<skipped"));
      if (ran.length === 0) return `no test ran:\n${output}`;
      const failures = ran.flatMap((said) => said?.includes("<failure") ? [said.trim()] : []);
      return code !== 0 && failures.length === 0 ? `it did not end well:\n${output}` : failures;
    } finally {
      await Deno.remove(report);
    }
  }
}

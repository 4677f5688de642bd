/**
 * One check of one value: what it may cost, where it stands, and what it found.
 *
 * @module
 */

import { isObject } from "../core/json.ts";
import type { LinearEngine, Pattern } from "./_patterns.ts";

/** It does not fit, nobody can tell, it fits: all of several is the least, any is the greatest. */
export const FAILS = 0, UNKNOWN = 1, FITS = 2;
/** How a value stands to a schema. */
export type Grade = 0 | 1 | 2;

/** The way to a value within the whole one. */
export interface Place {
  readonly up: Place | undefined;
  readonly key: string | number;
}

/** Ends a check that costs too much, from wherever it is; caught where the check began. */
export class TooMuch extends Error {}

/**
 * How many steps a check may take. A step is some 25 ns, so that all of them together stay below
 * the 50 ms for which others may hold the gateway's thread, on a slow machine too.
 */
const MOST_STEPS = 750_000;
/** How deep schemas may call each other, values within values included. */
const DEEPEST = 400;
const DEEPEST_VALUE = 500;
const MOST_ERRORS = 10;
/** How many characters of a name an error shows. */
const LONGEST_NAME = 200;

/** Gives enough of a name to know it by: errors would be as long as names are. */
export function brief(name: string | number): string {
  return String(name).slice(0, LONGEST_NAME);
}

/** Counts the steps of one check and collects what is wrong. */
export class Run {
  readonly errors: string[] = [];
  /** The first keyword that could not be checked. */
  unchecked: string | undefined;
  /** Above 0 nobody wants to know what is wrong. */
  quiet = 0;
  readonly #engine: LinearEngine | undefined;
  readonly #prepared: WeakSet<Pattern>;
  #left = MOST_STEPS;
  #depth = 0;

  /** Begins a check; `prepared` has the patterns that were run before. */
  constructor(engine: LinearEngine | undefined, prepared: WeakSet<Pattern>) {
    this.#engine = engine;
    this.#prepared = prepared;
  }

  /** How many steps were taken. */
  get taken(): number {
    return MOST_STEPS - this.#left;
  }

  /** Takes steps, or ends the check. */
  spend(steps: number): void {
    if ((this.#left -= steps) < 0) throw new TooMuch("it would take too long");
  }

  /** Goes one schema deeper; `leave` comes back. */
  enter(steps: number): void {
    this.spend(steps);
    if (++this.#depth > DEEPEST) throw new TooMuch("it is nested too deep");
  }

  /** Comes back from a schema. */
  leave(): void {
    this.#depth--;
  }

  /** Takes note of what is wrong, where somebody wants to know. */
  fail(at: Place | undefined, why: () => string): Grade {
    if (this.quiet > 0 || this.errors.length >= MOST_ERRORS) return FAILS;
    this.spend(100);
    const keys: string[] = [];
    for (let place = at; place !== undefined; place = place.up) keys.unshift(brief(place.key));
    this.errors.push(at === undefined ? why() : `${keys.join(".")}: ${why()}`);
    return FAILS;
  }

  /** Takes note of a keyword that cannot be checked. */
  unknown(keyword: string): Grade {
    this.unchecked ??= keyword;
    return UNKNOWN;
  }

  /** Tells whether a text matches; undefined where the engine cannot run the pattern after all. */
  matches(pattern: Pattern, text: string): boolean | undefined {
    if (!this.#prepared.has(pattern)) this.spend(pattern.preparing);
    this.#prepared.add(pattern);
    this.spend(pattern.steps(text.length));
    try {
      return pattern.test(text, this.#engine);
    } catch {
      return undefined; // what is left out of the check is told
    }
  }

  /** Gives the names of an object's members. */
  namesOf(value: object): readonly string[] {
    const names = Object.keys(value);
    // Many are kept in a table.
    this.spend(names.length * (names.length > 1_000 ? 8 : 2));
    return names;
  }

  /** Gives a text that is equal for equal values; of no other kind of value than JSON's. */
  keyOf(value: unknown, depth = 0): string {
    if (typeof value === "string") {
      // Long ones that are equally long are compared with each other.
      this.spend(4 + value.length / (value.length > 10_000 ? 2 : 20));
      // Never a text that looks like a number: those can be aimed at one place of a table.
      return `"${value.length}:${value}`;
    }
    this.spend(4);
    if (typeof value !== "object" || value === null) return `=${value}`;
    if (depth > DEEPEST_VALUE) throw new TooMuch("it is nested too deep");
    if (Array.isArray(value)) {
      return `[${value.map((item) => this.keyOf(item, depth + 1)).join()}]`;
    }
    const names = [...this.namesOf(value)].sort();
    this.spend(names.length * 16);
    return `{${
      names.map((name) => this.keyOf(name) + this.keyOf(Reflect.get(value, name), depth + 1)).join()
    }}`;
  }

  /** Tells whether JSON can carry a value: `1e400` reads as infinite and would be written as null. */
  isWritable(value: unknown): boolean {
    const left: unknown[] = [value];
    while (left.length > 0) {
      const next = left.pop();
      if (typeof next === "number" && !Number.isFinite(next)) return false;
      if (Array.isArray(next)) {
        this.spend(1 + next.length / 4);
        for (const item of next) left.push(item);
      } else if (isObject(next)) {
        this.spend(1);
        for (const name of this.namesOf(next)) left.push(next[name]);
      }
    }
    return true;
  }
}

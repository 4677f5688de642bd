/**
 * Globs of rules: `*` is anything but `/`, `**` anything at all. All globs of a set are matched at
 * once and without going back, in time that the set and the text bound together.
 *
 * @module
 */

/** Anything but `/`, anything at all, "what follows up to the `/` may be missing", and that. */
const [SHALLOW, DEEP, MAYBE, FOLDERS] = [0, 1, 2, 3] as const;
const TOKEN = /(?<=^|\/)\*\*\/|\*\*|\*|\\?./gsu;

type Token = typeof SHALLOW | typeof DEEP | typeof MAYBE | typeof FOLDERS | string;

/** What matching may still cost. */
export interface Steps {
  /** Counts down with each character, by the size of the set. */
  left: number;
}

/** How a text is matched. */
export interface Matching {
  readonly steps: Steps;
  /** Whether the text counts as what lies in it, too: `src` as `src/`. */
  readonly within?: boolean;
}

/**
 * A machine with one bit for each place in each glob: the places that the text so far leads to. No
 * place of one glob leads to a place of another, because the last of each leads nowhere.
 */
interface Machine {
  readonly words: number;
  readonly start: Int32Array;
  /** The places that stay for any character, and for any but `/`. */
  readonly deep: Int32Array;
  readonly shallow: Int32Array;
  /** The places that lead one place on, or two, without a character. */
  readonly one: Int32Array;
  readonly two: Int32Array;
  /** The places that a character leads one place on: the numbers of words, each with its bits. */
  readonly next: ReadonlyMap<string, readonly number[]>;
  /** The globs by their last places. */
  readonly ends: readonly (readonly [place: number, glob: string])[];
}

/** A set of globs, read when the first text is matched. */
export class GlobSet {
  readonly #globs: ReadonlySet<string>;
  readonly #written: (glob: string) => string;
  #machine: Machine | undefined;
  #folded: GlobSet | undefined;

  /** Takes globs as they are written. */
  constructor(globs: Iterable<string>, written = (glob: string) => glob) {
    this.#globs = new Set(globs);
    this.#written = written;
  }

  /** The same globs, for texts that `fold` wrote. */
  get folded(): GlobSet {
    return this.#folded ??= new GlobSet(this.#globs, fold);
  }

  /** Gives the globs that cover a text; undefined where the steps do not reach. */
  covering(text: string, { steps, within = false }: Matching): ReadonlySet<string> | undefined {
    const machine = this.#machine ??= machineOf(this.#globs, this.#written);
    const { words, start, ends } = machine;
    const found = new Set<string>();
    const places = start.slice();
    const take = () => {
      for (const [place, glob] of ends) if (has(places, place)) found.add(glob);
    };
    const goOn = (character: string) => advance(places, { machine, character });
    for (const character of text) {
      steps.left -= words;
      if (steps.left < 0) return undefined;
      if (!goOn(character)) return found;
    }
    take();
    if (within && goOn("/")) take();
    return found;
  }
}

/** Writes a text as the file systems that fold names take it; no `*` and no `\` comes of it. */
export function fold(text: string): string {
  return text.normalize("NFC").toUpperCase().toLowerCase();
}

function machineOf(globs: Iterable<string>, written: (glob: string) => string): Machine {
  const all = Array.from(globs, (glob) => ({ glob, tokens: tokensOf(written(glob)) }));
  const size = all.reduce((sum, { tokens }) => sum + tokens.length + 1, 0);
  const words = Math.ceil(size / 32);
  const of = () => new Int32Array(words);
  const [start, deep, shallow, one, two] = [of(), of(), of(), of(), of()];
  const next = new Map<string, number[]>();
  const ends: [number, string][] = [];
  let place = 0;
  for (const { glob, tokens } of all) {
    set(start, place);
    for (const token of tokens) {
      if (typeof token === "string") lead(next, token, place);
      else {
        if (token !== MAYBE) set(shallow, place);
        if (token === DEEP || token === FOLDERS) set(deep, place);
        if (token === FOLDERS) lead(next, "/", place);
        else set(one, place);
        if (token === MAYBE) set(two, place);
      }
      place++;
    }
    ends.push([place++, glob]);
  }
  leap(start, { one, two });
  return { words, start, deep, shallow, one, two, next, ends };
}

/** Reads a glob. Stars that follow each other are one, so that what they lead to is no star. */
function tokensOf(glob: string): readonly Token[] {
  const tokens: Token[] = [];
  for (const [text] of glob.matchAll(TOKEN)) {
    const last = tokens.at(-1);
    if (text === "**/") {
      if (last !== FOLDERS) tokens.push(MAYBE, FOLDERS);
    } else if (text === "**" || text === "*") {
      const isStar = last === SHALLOW || last === DEEP;
      if (isStar) tokens.pop();
      tokens.push(text === "**" || last === DEEP ? DEEP : SHALLOW);
    } else tokens.push(text.replace(/^\\/, ""));
  }
  return tokens;
}

/** Goes on by one character; false where that leads nowhere. */
function advance(
  places: Int32Array,
  { machine, character }: { readonly machine: Machine; readonly character: string },
): boolean {
  const { words, deep, shallow, next } = machine;
  const moves = next.get(character) ?? [];
  const staying = character === "/" ? deep : shallow;
  let [at, carry, isAny] = [0, 0, 0];
  for (let word = 0; word < words; word++) {
    const now = bitsOf(places, word);
    const moving = moves[at] === word ? now & bitsOf(moves, at + 1) : 0;
    if (moves[at] === word) at += 2;
    const then = now & bitsOf(staying, word) | moving << 1 | carry;
    carry = moving >>> 31;
    places[word] = then;
    isAny |= then;
  }
  if (isAny === 0) return false;
  leap(places, machine);
  return true;
}

/** Adds the places that are reached without a character. */
function leap(places: Int32Array, { one, two }: Pick<Machine, "one" | "two">): void {
  let [carryOne, carryTwo] = [0, 0];
  for (let word = 0; word < places.length; word++) {
    const now = bitsOf(places, word) | carryTwo;
    const byTwo = now & bitsOf(two, word);
    const all = now | byTwo << 2;
    const byOne = all & bitsOf(one, word);
    places[word] = all | byOne << 1 | carryOne;
    carryOne = byOne >>> 31;
    carryTwo = byTwo >>> 30;
  }
}

function bitsOf(words: Int32Array | readonly number[], word: number): number {
  return words[word] ?? 0;
}

function set(words: Int32Array, place: number): void {
  words[place >> 5] = bitsOf(words, place >> 5) | 1 << place;
}

function has(words: Int32Array, place: number): boolean {
  return (bitsOf(words, place >> 5) >>> place & 1) === 1;
}

/** Notes that a character leads on from a place, which comes after those that were noted. */
function lead(next: Map<string, number[]>, character: string, place: number): void {
  const moves = next.get(character) ?? [];
  if (moves.at(-2) !== place >> 5) moves.push(place >> 5, 0);
  moves[moves.length - 1] = bitsOf(moves, moves.length - 1) | 1 << place;
  next.set(character, moves);
}

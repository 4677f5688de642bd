/**
 * Globs of rules: `*` is anything but `/`, `**` anything at all. All globs of a set are matched at
 * once and without going back, in time that the set and the text bound together.
 *
 * @module
 */

/** Anything but `/`, anything at all, and "what follows up to the `/` may be missing". */
const [SHALLOW, DEEP, MAYBE] = [0, 1, 2] as const;
const TOKEN = /(?<=^|\/)\*\*\/|\*\*|\*|\\?./gsu;
const FOLDERS = [MAYBE, DEEP, "/"] as const;
/** The first place of a glob, which leads on before any character, and the last, which does not. */
const [BEGIN, END] = ["begin", "end"] as const;

type Token = typeof SHALLOW | typeof DEEP | typeof MAYBE | string;

/** What matching may still cost. */
export interface Steps {
  /** Counts down with each character, by the places that the text leads to. */
  left: number;
}

/** How a text is matched. */
export interface Matching {
  readonly steps: Steps;
  /** Whether the text counts as what lies in it, too: `src` as `src/`. */
  readonly within?: boolean;
}

/** All globs in one row of places, each with what it takes. */
interface Machine {
  readonly tokens: readonly Token[];
  readonly starts: readonly number[];
  /** The globs by their last places. */
  readonly ends: ReadonlyMap<number, string>;
  /** The step at which a place was reached last, so that it is listed once. */
  readonly reached: Float64Array;
}

/** A set of globs, read when the first text is matched. */
export class GlobSet {
  readonly #globs: ReadonlySet<string>;
  readonly #written: (glob: string) => string;
  #machine: Machine | undefined;
  #step = 0;
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
    let places = machine.starts;
    for (const character of [BEGIN, ...text]) {
      steps.left -= places.length;
      if (steps.left < 0) return undefined;
      places = this.#after(places, { machine, character });
    }
    const inside = within ? this.#after(places, { machine, character: "/" }) : [];
    return new Set([...places, ...inside].flatMap((place) => machine.ends.get(place) ?? []));
  }

  /** Gives the places that one more character leads to. */
  #after(
    places: readonly number[],
    { machine, character }: { readonly machine: Machine; readonly character: string },
  ): readonly number[] {
    const { tokens, reached } = machine;
    const step = ++this.#step;
    const next: number[] = [];
    const add = (place: number) => {
      if (reached[place] === step) return;
      reached[place] = step;
      next.push(place);
    };
    for (const place of places) {
      const token = tokens[place];
      if (token === character) add(place + 1);
      else if (token === DEEP || token === SHALLOW && character !== "/") add(place);
    }
    // What is reached without a character; the list grows while it is walked.
    for (const place of next) {
      const token = tokens[place];
      if (typeof token === "number") add(place + 1);
      if (token === MAYBE) add(place + FOLDERS.length);
    }
    return next;
  }
}

/** Writes a text as the file systems that fold names take it; no `*` and no `\` comes of it. */
export function fold(text: string): string {
  return text.normalize("NFC").toUpperCase().toLowerCase();
}

function machineOf(globs: Iterable<string>, written: (glob: string) => string): Machine {
  const [tokens, starts, ends]: [Token[], number[], Map<number, string>] = [[], [], new Map()];
  for (const glob of globs) {
    starts.push(tokens.length);
    tokens.push(BEGIN);
    for (const [text] of written(glob).matchAll(TOKEN)) tokens.push(...tokensOf(text));
    ends.set(tokens.length, glob);
    tokens.push(END);
  }
  return { tokens, starts, ends, reached: new Float64Array(tokens.length) };
}

function tokensOf(text: string): readonly Token[] {
  if (text === "**/") return FOLDERS;
  if (text === "**") return [DEEP];
  if (text === "*") return [SHALLOW];
  return [text.replace(/^\\/, "")];
}

/**
 * Globs of rules: `*` matches anything but `/`, `**` matches anything. All globs of a set are
 * matched at once and without backtracking, so the time is bounded by the size of the set and the
 * text.
 *
 * @module
 */

/** Tokens: anything but `/`; anything; and `**` with the `/` after it, which may match nothing. */
const [SHALLOW, DEEP, MAYBE] = [0, 1, 2] as const;
const TOKEN = /(?<=^|\/)\*\*\/|\*\*|\*|\\?./gsu;
const FOLDERS = [MAYBE, DEEP, "/"] as const;
/**
 * The first place of a glob, from which every match starts, and the last, which no character
 * leaves.
 */
const [BEGIN, END] = ["begin", "end"] as const;

/** Something that a text as a pattern may stand for at one place. */
interface Wildcard {
  /** Returns whether it may stand for a character. */
  readonly covers: (character: string) => boolean;
  /** Whether it may stand for any number of characters, also none. */
  readonly repeats: boolean;
}

type Token = typeof SHALLOW | typeof DEEP | typeof MAYBE | string;

/** The work that matching may still do. */
export interface Steps {
  /** Counts down with each character, by the number of places that are active. */
  left: number;
}

/** All globs as one row of places. Each place has the token that it matches. */
interface GlobMachine {
  readonly tokens: readonly Token[];
  readonly starts: readonly number[];
  /** The globs, by the index of their last place. */
  readonly ends: ReadonlyMap<number, string>;
  /**
   * The step at which each place was reached last. It prevents adding a place twice in one step.
   */
  readonly reached: Float64Array;
}

/** A set of globs. It is compiled when the first text is matched. */
export class GlobSet {
  readonly #globs: ReadonlySet<string>;
  readonly #written: (glob: string) => string;
  #machine: GlobMachine | undefined;
  #step = 0;
  readonly #folded = new Map<(text: string) => string, GlobSet>();

  /** Takes the globs, and a function that rewrites each before it is compiled. */
  constructor(globs: Iterable<string>, written = (glob: string) => glob) {
    this.#globs = new Set(globs);
    this.#written = written;
  }

  /** Returns the same globs, for texts that a function returned. */
  foldedBy(written: (text: string) => string): GlobSet {
    let folded = this.#folded.get(written);
    if (folded === undefined) {
      folded = new GlobSet(this.#globs, written);
      this.#folded.set(written, folded);
    }
    return folded;
  }

  /** Returns the globs that match a text; undefined if there are not enough steps left. */
  covering(
    text: string,
    { steps, within = false, isPattern = false }: {
      readonly steps: Steps;
      /** Whether the text also counts as a folder: then `src` matches as `src/`, too. */
      readonly within?: boolean;
      /**
       * Whether the text is itself a pattern, with `*`, `**`, `?` and `[...]` as shells have them. Then
       * the globs are returned that match something which the pattern matches.
       */
      readonly isPattern?: boolean;
    },
  ): ReadonlySet<string> | undefined {
    const machine = this.#machine ??= machineOf(this.#globs, this.#written);
    let places = machine.starts;
    for (const character of [BEGIN, ...isPattern ? patternOf(text) : text]) {
      steps.left -= places.length;
      if (steps.left < 0) return undefined;
      if (typeof character === "string" || !character.repeats) {
        places = this.#after(places, { machine, character });
        continue;
      }
      const reached = this.#repeated(places, { machine, character, steps });
      if (reached === undefined) return undefined;
      places = reached;
    }
    const inside = within ? this.#after(places, { machine, character: "/" }) : [];
    return new Set([...places, ...inside].flatMap((place) => machine.ends.get(place) ?? []));
  }

  /** Returns the places that are active after any number of characters; undefined without steps. */
  #repeated(
    places: readonly number[],
    { steps, ...at }: {
      readonly machine: GlobMachine;
      readonly character: Wildcard;
      readonly steps: Steps;
    },
  ): readonly number[] | undefined {
    const all = new Set(places);
    let latest = places;
    while (latest.length > 0) {
      steps.left -= latest.length;
      if (steps.left < 0) return undefined;
      latest = this.#after(latest, at).filter((place) => !all.has(place));
      for (const place of latest) all.add(place);
    }
    return [...all];
  }

  /** Returns the places that are active after one more character. */
  #after(
    places: readonly number[],
    { machine, character }: {
      readonly machine: GlobMachine;
      readonly character: string | Wildcard;
    },
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
      if (token === character || isCovered(token, character)) add(place + 1);
      else if (token === DEEP || token === SHALLOW && character !== "/") add(place);
    }
    // Adds the places that need no character. The list grows during this loop.
    for (const place of next) {
      const token = tokens[place];
      if (typeof token === "number") add(place + 1);
      if (token === MAYBE) add(place + FOLDERS.length);
    }
    return next;
  }
}

/** Returns whether a wildcard may stand for the character that a place has. */
function isCovered(token: Token | undefined, character: string | Wildcard): boolean {
  return typeof token === "string" && token !== BEGIN && token !== END &&
    typeof character !== "string" && character.covers(token);
}

const NO_SLASH = (character: string) => character !== "/";
const PATTERN = /\*\*|\*|\?|\[[!^]?\]?(?:\[[:.=][^\]/]*\]|[^\]/])*\]|./gsu;

/** Returns a text as a pattern: its characters, and what its wildcards may stand for. */
function patternOf(text: string): readonly (string | Wildcard)[] {
  return Array.from(text.matchAll(PATTERN), ([part]) => {
    if (part === "**") return { covers: () => true, repeats: true };
    if (part === "*") return { covers: NO_SLASH, repeats: true };
    if (part === "?") return { covers: NO_SLASH, repeats: false };
    return part.length > 1 && part.startsWith("[")
      ? { covers: classOf(part.slice(1, -1)), repeats: false }
      : part;
  });
}

/**
 * Returns a function that tests a character against a class. A class with a named class may cover
 * anything.
 */
function classOf(text: string): (character: string) => boolean {
  if (text.includes("[:") || text.includes("[.") || text.includes("[=")) return NO_SLASH;
  const isNegated = /^[!^]/.test(text);
  const members = [...isNegated ? text.slice(1) : text];
  const isMember = (character: string) =>
    members.some((each, at) =>
      each === character ||
      members[at + 1] === "-" && each <= character && character <= (members[at + 2] ?? "")
    );
  return (character) => character !== "/" && isMember(character) !== isNegated;
}

/** Returns a text as file systems without case compare names. The result has no new `*` or `\`. */
export function foldCase(text: string): string {
  return text.normalize("NFC").toUpperCase().toLowerCase();
}

function machineOf(globs: Iterable<string>, written: (glob: string) => string): GlobMachine {
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

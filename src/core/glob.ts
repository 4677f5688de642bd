/**
 * Matches the globs of rules: `*` matches anything but `/`, `**` matches anything. A set matches
 * all its globs at once as a state machine, without backtracking, so the time is at most
 * proportional to the size of the set times the length of the text. A *place* is a state of the
 * machine.
 *
 * @module
 */

/**
 * Tokens: any characters but `/`, any characters, and `**` with its `/`, which may match nothing.
 */
const [SHALLOW, DEEP, FOLDERS_OR_NOTHING] = [0, 1, 2] as const;
const TOKEN = /(?<=^|\/)\*\*\/|\*\*|\*|\\?./gsu;
const FOLDER_TOKENS = [FOLDERS_OR_NOTHING, DEEP, "/"] as const;
/** The tokens of the first and the last place of a glob. No character follows the last one. */
const [BEGIN, END] = ["begin", "end"] as const;

/** A wildcard of a text that is itself a pattern. */
interface Wildcard {
  /** Returns whether the wildcard may stand for a character. */
  readonly covers: (character: string) => boolean;
  /** Whether it may stand for any number of characters, including none. */
  readonly repeats: boolean;
}

type Token = typeof SHALLOW | typeof DEEP | typeof FOLDERS_OR_NOTHING | string;

/** The budget for the work of matching. */
export interface Steps {
  /** Counts down with each character, by the number of places that are active. */
  remaining: number;
}

/** The compiled globs: the tokens of all globs in one array. Its indexes are the places. */
interface GlobMachine {
  readonly tokens: readonly Token[];
  readonly starts: readonly number[];
  /** The globs, by the index of their last place. */
  readonly ends: ReadonlyMap<number, string>;
  /** The step in which each place was reached last, so that no place is added twice in a step. */
  readonly reached: Float64Array;
}

/** A set of globs. It is compiled when the first text is matched. */
export class GlobSet {
  readonly #globs: ReadonlySet<string>;
  readonly #rewrite: (glob: string) => string;
  #machine: GlobMachine | undefined;
  #step = 0;
  readonly #folded = new Map<(text: string) => string, GlobSet>();

  /** Takes the globs, and a function that rewrites each before it is compiled. */
  constructor(globs: Iterable<string>, rewrite = (glob: string) => glob) {
    this.#globs = new Set(globs);
    this.#rewrite = rewrite;
  }

  /** Returns the set of the same globs, each changed by `fold`. The texts must be folded, too. */
  foldedBy(fold: (text: string) => string): GlobSet {
    let folded = this.#folded.get(fold);
    if (folded === undefined) {
      folded = new GlobSet(this.#globs, fold);
      this.#folded.set(fold, folded);
    }
    return folded;
  }

  /** Returns the globs that match a text; undefined if there are not enough steps left. */
  findMatches(
    text: string,
    { steps, within = false, isPattern = false }: {
      readonly steps: Steps;
      /** Whether the text also counts as a folder: then `src` matches as `src/`, too. */
      readonly within?: boolean;
      /**
       * Whether the text is itself a pattern of a shell, with `*`, `**`, `?` and `[...]`. Then
       * returns the globs that match at least one text that the pattern matches.
       */
      readonly isPattern?: boolean;
    },
  ): ReadonlySet<string> | undefined {
    const machine = this.#machine ??= compile(this.#globs, this.#rewrite);
    let places = machine.starts;
    for (const character of [BEGIN, ...isPattern ? patternOf(text) : text]) {
      steps.remaining -= places.length;
      if (steps.remaining < 0) return undefined;
      if (typeof character === "string" || !character.repeats) {
        places = this.#advance(places, { machine, character });
        continue;
      }
      const reached = this.#advanceRepeatedly(places, { machine, character, steps });
      if (reached === undefined) return undefined;
      places = reached;
    }
    const insideFolder = within ? this.#advance(places, { machine, character: "/" }) : [];
    return new Set([...places, ...insideFolder].flatMap((place) => machine.ends.get(place) ?? []));
  }

  /**
   * Returns the active places after a wildcard for any number of characters; undefined without
   * steps.
   */
  #advanceRepeatedly(
    places: readonly number[],
    { steps, ...state }: {
      readonly machine: GlobMachine;
      readonly character: Wildcard;
      readonly steps: Steps;
    },
  ): readonly number[] | undefined {
    const all = new Set(places);
    let latest = places;
    while (latest.length > 0) {
      steps.remaining -= latest.length;
      if (steps.remaining < 0) return undefined;
      latest = this.#advance(latest, state).filter((place) => !all.has(place));
      for (const place of latest) all.add(place);
    }
    return [...all];
  }

  /** Returns the active places after one more character. */
  #advance(
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
      if (token === character || mayBe(token, character)) add(place + 1);
      else if (token === DEEP || token === SHALLOW && character !== "/") add(place);
    }
    // Adds the places that can be reached without a character. The list grows during this loop.
    for (const place of next) {
      const token = tokens[place];
      if (typeof token === "number") add(place + 1);
      if (token === FOLDERS_OR_NOTHING) add(place + FOLDER_TOKENS.length);
    }
    return next;
  }
}

/** Returns whether a wildcard may stand for the character of a token. */
function mayBe(token: Token | undefined, character: string | Wildcard): boolean {
  return typeof token === "string" && token !== BEGIN && token !== END &&
    typeof character !== "string" && character.covers(token);
}

const NO_SLASH = (character: string) => character !== "/";
const PATTERN = /\*\*|\*|\?|\[[!^]?\]?(?:\[[:.=][^\]/]*\]|[^\]/])*\]|./gsu;

/** Splits a pattern into characters and wildcards. */
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
 * Returns a function that tests a character against a class such as `a-z`. A class with a named
 * class, such as `[:alpha:]`, matches everything but `/`, because rules must not match too little.
 */
function classOf(text: string): (character: string) => boolean {
  if (text.includes("[:") || text.includes("[.") || text.includes("[=")) return NO_SLASH;
  const isNegated = /^[!^]/.test(text);
  const members = [...isNegated ? text.slice(1) : text];
  const isMember = (character: string) =>
    members.some((each, index) =>
      each === character ||
      members[index + 1] === "-" && each <= character && character <= (members[index + 2] ?? "")
    );
  return (character) => character !== "/" && isMember(character) !== isNegated;
}

/**
 * Returns the same text for all texts that a file system without case treats as the same name. The
 * result has no new `*` or `\`.
 */
export function foldCase(text: string): string {
  return text.normalize("NFC").toUpperCase().toLowerCase();
}

function compile(globs: Iterable<string>, rewrite: (glob: string) => string): GlobMachine {
  const [tokens, starts, ends]: [Token[], number[], Map<number, string>] = [[], [], new Map()];
  for (const glob of globs) {
    starts.push(tokens.length);
    tokens.push(BEGIN);
    for (const [text] of rewrite(glob).matchAll(TOKEN)) tokens.push(...tokensOf(text));
    ends.set(tokens.length, glob);
    tokens.push(END);
  }
  return { tokens, starts, ends, reached: new Float64Array(tokens.length) };
}

function tokensOf(text: string): readonly Token[] {
  if (text === "**/") return FOLDER_TOKENS;
  if (text === "**") return [DEEP];
  if (text === "*") return [SHALLOW];
  return [text.replace(/^\\/, "")];
}

/**
 * Globs of rules: `*` is anything but `/`, `**` anything at all; matched without going back.
 *
 * @module
 */

/** Anything but `/`, anything at all, and "what follows up to the `/` may be missing". */
const [SHALLOW, DEEP, MAYBE] = [0, 1, 2] as const;
const TOKEN = /(?<=^|\/)\*\*\/|\*\*|\*|\\?./gsu;
const FOLDERS = [MAYBE, DEEP, "/"] as const;

type Token = typeof SHALLOW | typeof DEEP | typeof MAYBE | string;

/** A glob, read once. */
export class Glob {
  /** What the person wrote. */
  readonly text: string;
  readonly #head: string;
  #tokens: readonly Token[] | undefined;
  #folded: Glob | undefined;

  /** Takes a glob as it is written. */
  constructor(text: string) {
    this.text = text;
    this.#head = /^[^\\*]*/.exec(text)?.[0] ?? "";
  }

  /** Tells whether it covers a text. The time grows with both lengths, whatever they hold. */
  matches(text: string): boolean {
    // Most globs of a long list differ here already.
    if (!text.startsWith(this.#head)) return false;
    this.#tokens ??= [...this.text.matchAll(TOKEN)].flatMap(([token]) => tokenOf(token));
    const tokens = this.#tokens;
    let places = new Set([0]);
    for (const character of text) {
      places = after(places, { character, tokens });
      if (places.size === 0) return false;
    }
    return reached(places, tokens).has(tokens.length);
  }

  /** Tells whether it covers a text for a file system that folds case and composes letters. */
  matchesFolded(text: string): boolean {
    this.#folded ??= new Glob(fold(this.text));
    return this.#folded.matches(text);
  }
}

/** Writes a text as the file systems that fold names take it; no `*` and no `\` comes of it. */
export function fold(text: string): string {
  return text.normalize("NFC").toUpperCase().toLowerCase();
}

function tokenOf(token: string): readonly Token[] {
  if (token === "**/") return FOLDERS;
  if (token === "**") return [DEEP];
  if (token === "*") return [SHALLOW];
  return [token.replace(/^\\/, "")];
}

/** Gives the places in the glob that one more character leads to. */
function after(
  places: ReadonlySet<number>,
  { character, tokens }: { readonly character: string; readonly tokens: readonly Token[] },
): Set<number> {
  const next = new Set<number>();
  for (const place of reached(places, tokens)) {
    const token = tokens[place];
    if (token === character) next.add(place + 1);
    else if (token === DEEP || token === SHALLOW && character !== "/") next.add(place);
  }
  return next;
}

/** Adds the places that are reached without a character: a set grows while it is walked. */
function reached(places: ReadonlySet<number>, tokens: readonly Token[]): Set<number> {
  const all = new Set(places);
  for (const place of all) {
    const token = tokens[place];
    if (typeof token === "number") all.add(place + 1);
    if (token === MAYBE) all.add(place + FOLDERS.length);
  }
  return all;
}

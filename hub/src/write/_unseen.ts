/**
 * Finds characters that a reader does not see, and words whose letters look like others.
 *
 * @module
 */

/** Controls, line separators, ignorable code points (also variation selectors), and blanks. */
const UNSEEN = /[\p{C}\p{Zl}\p{Zp}\p{DI}\u{2800}]/u;
const BREAKS = /[\n\t]/g;
/** Emoji, whose sequences contain joiners, variation selectors and tags. */
const EMOJI = /\p{RGI_Emoji}|\p{Emoji}\u{fe0e}/gv;
/** A joiner after a letter of a script that is written with it (Unicode core, section 23.2). */
const JOINERS =
  /(?<=[\p{scx=Arab}\p{scx=Syrc}\p{scx=Deva}\p{scx=Beng}\p{scx=Guru}\p{scx=Gujr}\p{scx=Orya}\p{scx=Taml}\p{scx=Telu}\p{scx=Knda}\p{scx=Mlym}\p{scx=Sinh}\p{scx=Khmr}])[\u{200c}\u{200d}]/gu;
const WORD = /[\p{L}\p{M}\p{N}]+/gu;
const LATIN = /\p{Script=Latin}/u;
const OTHER = /(?!\p{Script=Latin})\p{L}/u;

/** Returns the first character of a text that a reader does not see, as `U+200B`. */
export function unseenIn(text: string): string | undefined {
  const plain = text.replace(BREAKS, "").replace(EMOJI, "").replace(JOINERS, "");
  const [match] = UNSEEN.exec(plain) ?? [];
  const point = match?.codePointAt(0)?.toString(16).toUpperCase().padStart(4, "0");
  return point && `U+${point}`;
}

/**
 * Returns the first word of a text that looks like another: its letters are of several alphabets
 * (`gіthub` with a Cyrillic letter), or forms of Latin letters such as fullwidth ones.
 */
export function lookAlikeIn(text: string): string | undefined {
  return text.match(WORD)?.find((word) => {
    const folded = word.normalize("NFKC");
    const isFormed = folded !== word.normalize("NFC") && /[A-Za-z]/.test(folded);
    return isFormed || LATIN.test(word) && OTHER.test(word);
  });
}

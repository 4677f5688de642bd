/**
 * Finds invisible characters, and words that look like other words.
 *
 * @module
 */

/** Controls, line separators, ignorable code points (with variation selectors), and blank Braille. */
const INVISIBLE = /[\p{C}\p{Zl}\p{Zp}\p{DI}\u{2800}]/u;
const BREAKS = /[\n\t]/g;
/** Emoji, whose sequences may contain joiners, variation selectors and tags. */
const EMOJI = /\p{RGI_Emoji}|\p{Emoji}\u{fe0e}/gv;
/** A joiner after a letter of a script that uses joiners (Unicode core, section 23.2). */
const JOINERS =
  /(?<=[\p{scx=Arab}\p{scx=Syrc}\p{scx=Deva}\p{scx=Beng}\p{scx=Guru}\p{scx=Gujr}\p{scx=Orya}\p{scx=Taml}\p{scx=Telu}\p{scx=Knda}\p{scx=Mlym}\p{scx=Sinh}\p{scx=Khmr}])[\u{200c}\u{200d}]/gu;
const WORD = /[\p{L}\p{M}\p{N}]+/gu;
const LATIN = /\p{Script=Latin}/u;
const OTHER_LETTER = /(?!\p{Script=Latin})\p{L}/u;

/** Returns the first invisible character of a text in the form `U+200B`; undefined if none. */
export function findInvisible(text: string): string | undefined {
  const plain = text.replace(BREAKS, "").replace(EMOJI, "").replace(JOINERS, "");
  const [match] = INVISIBLE.exec(plain) ?? [];
  const point = match?.codePointAt(0)?.toString(16).toUpperCase().padStart(4, "0");
  return point && `U+${point}`;
}

/**
 * Returns the first word of a text that looks like another word: its letters are from several
 * alphabets (`gіthub` with a Cyrillic letter), or styled Latin letters such as fullwidth ones.
 */
export function findLookAlike(text: string): string | undefined {
  return text.match(WORD)?.find((word) => {
    const folded = word.normalize("NFKC");
    const isStyled = folded !== word.normalize("NFC") && /[A-Za-z]/.test(folded);
    return isStyled || LATIN.test(word) && OTHER_LETTER.test(word);
  });
}

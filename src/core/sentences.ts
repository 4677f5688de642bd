/**
 * Joins lines to one text for users.
 *
 * @module
 */

/**
 * Joins lines with blanks. Ends a line with a full stop if the next one begins a sentence, so that two
 * sentences do not read as one.
 */
export function joinSentences(lines: readonly string[]): string {
  const texts = lines.map((line) => line.trim()).filter((line) => line !== "");
  return texts.map((text, index) => {
    const next = texts[index + 1] ?? "";
    return /^\p{Lu}/u.test(next) && !/[\p{P}]$/u.test(text.replace(/["'`)\]]$/u, ""))
      ? `${text}.`
      : text;
  }).join(" ");
}

/**
 * Joins lines, messages and hints to one text for users.
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

/** Joins a message and its hint to one text, for receivers that show one text only. */
export function withHint(message: string, hint: string | undefined): string {
  if (hint === undefined || hint === "") return message;
  return /[.?!]$/.test(message) ? `${message} ${hint}` : `${message}. ${hint}`;
}

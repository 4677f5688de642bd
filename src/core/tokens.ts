/**
 * Estimates what a text costs a model, without the tables that a real count needs.
 *
 * @module
 */

const CHARACTERS_PER_TOKEN = 4.2;

/** Estimates how many tokens (o200k) a text is. */
export function tokensOf(text: string): number {
  return Math.ceil(text.length / CHARACTERS_PER_TOKEN);
}

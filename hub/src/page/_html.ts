/**
 * Creates HTML in which every value is escaped. Only this file turns texts into HTML.
 *
 * @module
 */

import { visible } from "@casys/pml/registry";

/** A value of a template. */
export type Value = string | number | Html | readonly Value[];

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};
/** Invisible characters and characters that change how other characters are shown, except the tab. */
const INVISIBLE =
  /((?:(?!\t)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}\p{Default_Ignorable_Code_Point}\u2800])+)/u;

/** HTML from the template tag `html`, so all texts in it are escaped. */
export class Html {
  readonly #text: string;

  private constructor(text: string) {
    this.#text = text;
  }

  /** Escapes the values of a template; exported as `html`. Write attributes as `name="${value}"`. */
  static of(parts: TemplateStringsArray, ...values: readonly Value[]): Html {
    const texts = values.map((value, index) =>
      parts[index]?.endsWith('="')
        ? escapeHtml(visible(String(value), Infinity))
        : Html.#render(value)
    );
    return new Html(String.raw({ raw: parts }, ...texts));
  }

  static #render(value: Value): string {
    if (value instanceof Html) return value.#text;
    if (typeof value === "object") return value.map((item) => Html.#render(item)).join("");
    const pieces = String(value).split(INVISIBLE);
    return pieces.map((piece, index) => index % 2 === 0 ? escapeHtml(piece) : mark(piece)).join("");
  }

  /** Returns the text of the HTML. */
  toString(): string {
    return this.#text;
  }
}

/** The template tag that creates HTML and escapes every value. */
export const html = Html.of;

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? "");
}

/** Shows invisible characters as marked escapes, so that they differ from escapes in the text. */
function mark(text: string): string {
  const characters = [...text].map((character) => {
    const symbol = visible(character);
    return symbol === character ? `\\u{${character.codePointAt(0)?.toString(16)}}` : symbol;
  });
  return `<mark>${escapeHtml(characters.join(""))}</mark>`;
}

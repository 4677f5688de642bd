/**
 * Makes HTML in which every value is escaped. No other file joins texts to HTML.
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
/** Invisible characters, and those that change how others are shown, except the tab. */
const ODD =
  /((?:(?!\t)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}\p{Default_Ignorable_Code_Point}\u2800])+)/u;

/** HTML that `html` made, so that all texts in it are escaped. */
export class Html {
  readonly #text: string;

  private constructor(text: string) {
    this.#text = text;
  }

  /** Is the tag of templates; use it as `html`. An attribute is written as `name="${value}"`. */
  static of(parts: TemplateStringsArray, ...values: readonly Value[]): Html {
    const texts = values.map((value, at) =>
      parts[at]?.endsWith('="') ? escaped(visible(String(value), Infinity)) : Html.#shown(value)
    );
    return new Html(String.raw({ raw: parts }, ...texts));
  }

  static #shown(value: Value): string {
    if (value instanceof Html) return value.#text;
    if (typeof value === "object") return value.map((one) => Html.#shown(one)).join("");
    const pieces = String(value).split(ODD);
    return pieces.map((piece, at) => at % 2 === 0 ? escaped(piece) : marked(piece)).join("");
  }

  /** Returns the HTML as text, to be sent. */
  toString(): string {
    return this.#text;
  }
}

/** Makes HTML of a template, and escapes every value in it. */
export const html = Html.of;

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? "");
}

/** Marks an invisible character, so that it differs from an escape that an author wrote. */
function marked(text: string): string {
  const characters = [...text].map((character) => {
    const symbol = visible(character);
    return symbol === character ? `\\u{${character.codePointAt(0)?.toString(16)}}` : symbol;
  });
  return `<mark>${escaped(characters.join(""))}</mark>`;
}

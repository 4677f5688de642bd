/**
 * Colours and signs for terminals. `NO_COLOR` and terminals without colours are respected; piped
 * output stays plain.
 *
 * @module
 */

import process from "node:process";
import { styleText } from "node:util";
import { fitToTerminal, type Paint } from "./out.ts";

type Colour = "green" | "yellow" | "red" | "bold" | "dim";

/** Shows the marks of a report as signs. */
export const paintReport: Paint = (text) =>
  fitToTerminal(text).replace(/^(?:ok {2}|warn|FAIL)(?= )/gm, (mark) => {
    if (mark === "FAIL") return colourText("red", "✘");
    return mark === "warn" ? colourText("yellow", "!") : colourText("green", "✔");
  }).replace(/^ {5}(\S.*)$/gm, (_, hint) => `  ${colourText("dim", `→ ${hint}`)}`);

/** Colours the decision of the rules about each tool. */
export const paintVerdicts: Paint = (text) =>
  fitToTerminal(text).replace(
    /^( *\S+ +)(runs|asks|denied|fails|paused)(?= |$)/gm,
    (_, before, verdict) => {
      const colour = verdict === "runs" ? "green" : verdict === "asks" ? "yellow" : "red";
      return before + colourText(colour, verdict);
    },
  );

/** Colours the beginning of an error or a warning. */
export const paintFailure: Paint = (text) =>
  text.replace(
    /^(error: [A-Z_]+|warning):/,
    (mark) => mark.startsWith("w") ? colourText("yellow", mark) : colourText("red", mark),
  );

/** Makes the keys of a question bold. */
export const paintQuestion: Paint = (text) =>
  text.replace(
    /\[[ysartNd]\](?= (?:yes|once|for this session|always|\d+ tools|no|never)\b)/g,
    (key) => colourText("bold", key),
  );

/** Makes the titles of help bold. */
export const paintHelp: Paint = (text) =>
  fitToTerminal(text).replace(/^[A-Z][^\n]*:$/gm, (title) => colourText("bold", title));

function colourText(colour: Colour, text: string): string {
  return styleText(colour, text, { stream: process.stderr });
}

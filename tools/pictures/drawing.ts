/**
 * Draws what a terminal showed as SVG, with its colours. The text stays text.
 *
 * @module
 */

const COLUMNS = 100;
const [WIDTH, LINE, MARGIN] = [8.4, 20, 16];
const COLOURS: Readonly<Record<string, string>> = {
  "1": "#ffffff",
  "2": "#8b949e",
  "31": "#ff7b72",
  "32": "#7ee787",
  "33": "#e3b341",
};
const PLAIN = "#c9d1d9";
/** What begins a change of colour. */
const ESCAPE = "\u001b";
const CODE = new RegExp(`(${ESCAPE}\\[[0-9;]*m)`);

/** A picture of a terminal. */
export interface Picture {
  /** What a person who cannot see it is told. */
  readonly title: string;
  /** What was typed and shown, with the codes for colours. */
  readonly text: string;
}

/** Returns a picture as SVG. */
export function drawn({ title, text }: Picture): string {
  const lines = text.trimEnd().split("\n").flatMap(wrapped);
  const width = Math.ceil(COLUMNS * WIDTH + 2 * MARGIN);
  const height = lines.length * LINE + 2 * MARGIN;
  const rows = lines.map((line, at) => {
    const y = MARGIN + LINE * at + 14;
    return `<text x="${MARGIN}" y="${y}" xml:space="preserve">${spans(line)}</text>`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="${escaped(title)}" ` +
    `width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="${width}" height="${height}" rx="8" fill="#0d1117"/>`,
    `<g font-family="ui-monospace, Menlo, Consolas, monospace" font-size="14" fill="${PLAIN}">`,
    ...rows,
    "</g>",
    "</svg>",
    "",
  ].join("\n");
}

/** Breaks a line that is too long for the terminal, between words where there are some. */
function wrapped(line: string): readonly string[] {
  const pieces = line.split(CODE).flatMap((piece) =>
    piece.startsWith(ESCAPE) ? [piece] : piece.split(/(?<= )/)
  );
  const parts: string[] = [];
  let [part, length] = ["", 0];
  for (const piece of pieces) {
    const own = piece.startsWith(ESCAPE) ? 0 : piece.trimEnd().length;
    if (length + own > COLUMNS) {
      parts.push(part);
      [part, length] = ["  ", 2];
    }
    part += piece;
    length += piece.startsWith(ESCAPE) ? 0 : piece.length;
  }
  return [...parts, part];
}

function spans(line: string): string {
  const [first = "", ...rest] = line.split(`${ESCAPE}[`);
  return escaped(first) + rest.map((part) => {
    const [, code = "", text = ""] = /^([0-9;]*)m(.*)$/s.exec(part) ?? [];
    const colour = COLOURS[code];
    return colour === undefined || text === ""
      ? escaped(text)
      : `<tspan fill="${colour}">${escaped(text)}</tspan>`;
  }).join("");
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}

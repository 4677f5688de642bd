/**
 * Draws the output of a terminal as SVG, with its colours. The text stays text. A viewer with support
 * for animations shows one line after the other; other viewers show all lines.
 *
 * @module
 */

const COLUMNS = 100;
const [WIDTH, LINE, MARGIN] = [8.4, 20, 16];
/** The CSS classes of the SGR codes of terminals. */
const CLASSES: Readonly<Record<string, string>> = { 1: "b", 2: "m", 31: "r", 32: "g", 33: "y" };
/** The colours of the classes in the light and the dark theme. */
const COLOURS: Readonly<Record<string, readonly [light: string, dark: string]>> = {
  p: ["#1f2328", "#c9d1d9"],
  b: ["#000000", "#ffffff"],
  m: ["#59636e", "#8b949e"],
  r: ["#cf222e", "#ff7b72"],
  g: ["#116329", "#7ee787"],
  y: ["#7d4e00", "#e3b341"],
};
const BACKGROUND = { light: "#f6f8fa", dark: "#0d1117" } as const;
/** The pauses of the animation after a typed line, after a scene, and per line of output. */
const [TYPED_S, SCENE_S, READ_S] = [0.6, 0.8, 0.12];
/** The beginning of a code that changes the colour. */
const ESCAPE = "\u001b";
const CODE = new RegExp(`(${ESCAPE}\\[[0-9;]*m)`);

/** A picture of a terminal. */
export interface Picture {
  /** The alternative text of the picture. */
  readonly title: string;
  readonly scenes: readonly Scene[];
}

/** A typed line and its output. */
export interface Scene {
  /** A comment above the line. */
  readonly caption?: string;
  readonly line: string;
  /** The output, with codes for colours. */
  readonly screen: string;
}

/** Lines that appear at the same time. */
interface Part {
  readonly lines: readonly string[];
  /** When they appear, in seconds from the start. */
  readonly seconds: number;
}

/** Returns a picture as SVG. */
export function drawPicture({ title, scenes }: Picture): string {
  const parts = partsOf(scenes);
  const rows = parts.flatMap(({ lines }) => lines).length;
  const width = Math.ceil(COLUMNS * WIDTH + 2 * MARGIN);
  const height = rows * LINE + 2 * MARGIN;
  let row = 0;
  const groups = parts.map(({ lines, seconds }) => {
    const texts = lines.map((line) => textOf(line, row++)).filter((text) => text !== "");
    const when = seconds === 0 ? "" : ` class="s" style="animation-delay:${seconds.toFixed(1)}s"`;
    return [`<g${when}>`, ...texts, "</g>"].join("\n");
  });
  const typed = scenes.map(({ caption, line }) =>
    caption === undefined ? line : `${caption} ${line}`
  );
  return [
    '<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="title desc" ' +
    `width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">`,
    `<title id="title">${escapeXml(title)}</title>`,
    `<desc id="desc">A terminal. Typed: ${escapeXml(typed.join("; "))}</desc>`,
    style(),
    `<rect class="k" width="${width}" height="${height}" rx="8"/>`,
    '<g class="p" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="14">',
    ...groups,
    "</g>",
    "</svg>",
    "",
  ].join("\n");
}

function style(): string {
  const fills = (theme: 0 | 1) =>
    Object.entries(COLOURS).map(([name, colours]) => `.${name}{fill:${colours[theme]}}`).join("");
  return [
    "<style>",
    `.k{fill:${BACKGROUND.light}}${fills(0)}`,
    "@keyframes hidden{from,to{visibility:hidden}}",
    // The animation only hides lines at first, so they are visible without support for animations.
    ".s{animation:hidden 1ms backwards}",
    "@media(prefers-reduced-motion:reduce){.s{animation:none}}",
    `@media(prefers-color-scheme:dark){.k{fill:${BACKGROUND.dark}}${fills(1)}}`,
    "</style>",
  ].join("\n");
}

/** Returns the lines with their times: each typed line, and then its output. */
function partsOf(scenes: readonly Scene[]): readonly Part[] {
  const parts: Part[] = [];
  let seconds = 0;
  for (const [number, { caption, line, screen }] of scenes.entries()) {
    const typed = [
      ...(number === 0 ? [] : [""]),
      ...(caption === undefined ? [] : [withCode(2, `# ${caption}`)]),
      withCode(1, `$ ${line}`),
    ];
    parts.push({ lines: typed.flatMap(wrapLine), seconds });
    seconds += TYPED_S;
    const lines = screen === "" ? [] : screen.split("\n").flatMap(wrapLine);
    if (lines.length > 0) parts.push({ lines, seconds });
    seconds += SCENE_S + READ_S * lines.length;
  }
  return parts;
}

function withCode(code: number, text: string): string {
  return `${ESCAPE}[${code}m${text}${ESCAPE}[22m`;
}

/** Wraps a line that is too long for the terminal, between words if possible. */
function wrapLine(line: string): readonly string[] {
  const pieces = line.split(CODE).flatMap((piece) =>
    piece.startsWith(ESCAPE) ? [piece] : piece.split(/(?<= )/)
  );
  const parts: string[] = [];
  let [part, length] = ["", 0];
  for (const piece of pieces) {
    const pieceLength = piece.startsWith(ESCAPE) ? 0 : piece.trimEnd().length;
    if (length + pieceLength > COLUMNS) {
      parts.push(part);
      [part, length] = ["  ", 2];
    }
    part += piece;
    length += piece.startsWith(ESCAPE) ? 0 : piece.length;
  }
  return [...parts, part].map((text) => text.trimEnd());
}

/** Returns the SVG of a row of text; empty for an empty row. */
function textOf(line: string, row: number): string {
  if (line === "") return "";
  const y = MARGIN + LINE * row + 14;
  // On each element, because browsers do not inherit `xml:space` from the group.
  return `<text x="${MARGIN}" y="${y}" xml:space="preserve">${spans(line)}</text>`;
}

function spans(line: string): string {
  const [first = "", ...rest] = line.split(`${ESCAPE}[`);
  return escapeXml(first) + rest.map((part) => {
    const [, code = "", text = ""] = /^([0-9;]*)m(.*)$/s.exec(part) ?? [];
    const name = CLASSES[code];
    return name === undefined || text === ""
      ? escapeXml(text)
      : `<tspan class="${name}">${escapeXml(text)}</tspan>`;
  }).join("");
}

function escapeXml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}

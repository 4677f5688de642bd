/**
 * Draws what a terminal showed as SVG, with its colours. The text stays text. A viewer that knows
 * animations shows one line after the other; any other shows all of it.
 *
 * @module
 */

const COLUMNS = 100;
const [WIDTH, LINE, MARGIN] = [8.4, 20, 16];
/** The classes of the codes that a terminal takes. */
const CLASSES: Readonly<Record<string, string>> = { 1: "b", 2: "m", 31: "r", 32: "g", 33: "y" };
/** The colours of the classes, on a light page and on a dark one. */
const COLOURS: Readonly<Record<string, readonly [light: string, dark: string]>> = {
  p: ["#1f2328", "#c9d1d9"],
  b: ["#000000", "#ffffff"],
  m: ["#59636e", "#8b949e"],
  r: ["#cf222e", "#ff7b72"],
  g: ["#116329", "#7ee787"],
  y: ["#7d4e00", "#e3b341"],
};
const BACK = { light: "#f6f8fa", dark: "#0d1117" } as const;
/** How long a film waits behind a line that was typed, behind a scene, and to read one line. */
const [TYPED_S, SCENE_S, READ_S] = [0.6, 0.8, 0.12];
/** What begins a change of colour. */
const ESCAPE = "\u001b";
const CODE = new RegExp(`(${ESCAPE}\\[[0-9;]*m)`);

/** A picture of a terminal. */
export interface Picture {
  /** What a user who cannot see it is told. */
  readonly title: string;
  readonly scenes: readonly Scene[];
}

/** A line that was typed, and what it showed. */
export interface Scene {
  /** What is said of it, above it. */
  readonly said?: string;
  readonly line: string;
  /** What the screen showed, with the codes for colours. */
  readonly shown: string;
}

/** Lines that come at the same time. */
interface Part {
  readonly lines: readonly string[];
  /** When they come, in seconds. */
  readonly at: number;
}

/** Returns a picture as SVG. */
export function drawn({ title, scenes }: Picture): string {
  const parts = partsOf(scenes);
  const rows = parts.flatMap(({ lines }) => lines).length;
  const width = Math.ceil(COLUMNS * WIDTH + 2 * MARGIN);
  const height = rows * LINE + 2 * MARGIN;
  let row = 0;
  const groups = parts.map(({ lines, at }) => {
    const texts = lines.map((line) => textOf(line, row++)).filter((text) => text !== "");
    const when = at === 0 ? "" : ` class="s" style="animation-delay:${at.toFixed(1)}s"`;
    return [`<g${when}>`, ...texts, "</g>"].join("\n");
  });
  const typed = scenes.map(({ said, line }) => said === undefined ? line : `${said} ${line}`);
  return [
    '<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="title desc" ' +
    `width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">`,
    `<title id="title">${escaped(title)}</title>`,
    `<desc id="desc">A terminal. Typed: ${escaped(typed.join("; "))}</desc>`,
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
  const fills = (at: 0 | 1) =>
    Object.entries(COLOURS).map(([name, both]) => `.${name}{fill:${both[at]}}`).join("");
  return [
    "<style>",
    `.k{fill:${BACK.light}}${fills(0)}`,
    "@keyframes hidden{from,to{visibility:hidden}}",
    // It ends shown, and without animations it never was hidden.
    ".s{animation:hidden 1ms backwards}",
    "@media(prefers-reduced-motion:reduce){.s{animation:none}}",
    `@media(prefers-color-scheme:dark){.k{fill:${BACK.dark}}${fills(1)}}`,
    "</style>",
  ].join("\n");
}

/** Returns what comes at which time: each typed line, then what it showed. */
function partsOf(scenes: readonly Scene[]): readonly Part[] {
  const parts: Part[] = [];
  let at = 0;
  for (const [number, { said, line, shown }] of scenes.entries()) {
    const typed = [
      ...(number === 0 ? [] : [""]),
      ...(said === undefined ? [] : [coded(2, `# ${said}`)]),
      coded(1, `$ ${line}`),
    ];
    parts.push({ lines: typed.flatMap(wrapped), at });
    at += TYPED_S;
    const lines = shown === "" ? [] : shown.split("\n").flatMap(wrapped);
    if (lines.length > 0) parts.push({ lines, at });
    at += SCENE_S + READ_S * lines.length;
  }
  return parts;
}

function coded(code: number, text: string): string {
  return `${ESCAPE}[${code}m${text}${ESCAPE}[22m`;
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
  return [...parts, part].map((each) => each.trimEnd());
}

/** Returns a row of text, or nothing where the row is empty. */
function textOf(line: string, row: number): string {
  if (line === "") return "";
  const y = MARGIN + LINE * row + 14;
  // Browsers do not take it from the group around.
  return `<text x="${MARGIN}" y="${y}" xml:space="preserve">${spans(line)}</text>`;
}

function spans(line: string): string {
  const [first = "", ...rest] = line.split(`${ESCAPE}[`);
  return escaped(first) + rest.map((part) => {
    const [, code = "", text = ""] = /^([0-9;]*)m(.*)$/s.exec(part) ?? [];
    const name = CLASSES[code];
    return name === undefined || text === ""
      ? escaped(text)
      : `<tspan class="${name}">${escaped(text)}</tspan>`;
  }).join("");
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}

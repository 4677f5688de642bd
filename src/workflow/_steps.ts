/**
 * Splits an intent into steps by its sentences and words, and finds the literals in it.
 *
 * @module
 */

import { termsOf } from "../search/terms.ts";

/** A value that an intent contains literally. */
export interface Literal {
  readonly kind: "text" | "url" | "email" | "path" | "glob" | "name" | "date" | "time" | "number";
  readonly value: string;
}

/** One step of an intent. */
export interface IntentStep {
  /** The search query for the tool. Paths and addresses are replaced by their kinds. */
  readonly query: string;
  /** The original words. */
  readonly text: string;
  readonly literals: readonly Literal[];
}

/** The maximum number of steps: a plan has 12 tasks, and a few more show that steps are left out. */
const STEPS_MAX = 20;
/** The maximum length of a query for one step. */
const QUERY_MAX = 2_000;
/** The kinds of literals. Later patterns do not match text that an earlier one matched. */
const PATTERNS: readonly (readonly [Literal["kind"], RegExp])[] = [
  ["text", /"[^"\n]+"|“[^“”\n]+”|`[^`\n]+`|(?<!\w)'[^'\n]+'(?!\w)/],
  ["url", /https?:\/\/[^\s"'<>]*[^\s"'<>.,;:!?)]/],
  ["email", /[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,4}/],
  // With a wildcard, as of file names.
  ["glob", /(?<![\w*])[\w./-]{0,64}\*[\w.*/-]{0,64}(?<![./-])/],
  ["path", /(?<!\w)(?:[A-Za-z]:\\|~\/|\.{1,2}\/|\/)[\w./\\-]*[\w/]/],
  [
    "path",
    /\b(?!(?:e\.g|i\.e|a\.m|p\.m)\b)[\w-]{1,64}(?:\/[\w-]{1,64}){0,9}\.(?!(?:com|org|net|io|ai)\b)[A-Za-z][A-Za-z0-9]{0,4}\b(?!\.\w)/,
  ],
  // A hidden file.
  ["path", /(?<![\w.])\.[A-Za-z][\w-]{1,64}\b(?!\.\w)/],
  // A folder, a branch, a time zone.
  ["name", /(?<![\w./-])[A-Za-z][\w-]{0,64}(?:\/[\w-]{1,64}){1,9}\b(?![./])/],
  // A revision: hexadecimal, with digits and letters.
  ["name", /\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b/],
  ["time", /\b\d{1,2}:\d{2}\b/],
  ["date", /\b\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2})?Z?)?\b/],
  ["number", /(?<![\w.-])-?\d{1,15}(?:\.\d{1,10})?(?![\w.]*\w)/],
];
const LITERAL = new RegExp(PATTERNS.map(([, { source }]) => `(${source})`).join("|"), "g");
/** Delimit the placeholder of a literal while the text is split. */
const [OPEN, CLOSE] = ["\uE000", "\uE001"];
const PLACE = new RegExp(`${OPEN}(\\d+)${CLOSE}`, "g");
const BREAK = /\n|(?<![.!?;:,])[.!?;:,]+(?: |$)| (?:and|then|finally) /i;
const LEADING = /^(?:and|then|finally|please|also|next|after that)\s+/i;
/** A part that writes something, the placeholder of a path, and its number. */
const SAVED = new RegExp(
  `^(save|write|put|store|export) (.{1,200}?) (?:to|into|in|as) (${OPEN}(\\d+)${CLOSE})$`,
  "i",
);
/** Terms for the content of an earlier step. */
const CONTENTS = new Set(["content", "text", "result", "output", "file", "them", "find", "found"]);
/** The words that tools use for kinds of files, by file name extension. */
const FILES: Readonly<Record<string, string>> = {
  md: "markdown",
  py: "python",
  ts: "typescript",
  js: "javascript",
  txt: "text",
  xls: "excel sheet",
  xlsx: "excel sheet",
  ppt: "presentation",
  pptx: "presentation",
  doc: "word document",
  docx: "word document",
  png: "image",
  jpg: "image",
  jpeg: "image",
  wav: "audio",
  mp3: "audio",
  db: "database",
};

/** Returns the steps of an intent, in their order. */
export function intentSteps(intent: string): readonly IntentStep[] {
  const literals: Literal[] = [];
  const marked = intent.replaceAll(/[\uE000\uE001]/g, " ").replace(LITERAL, (match, ...groups) => {
    const kind = PATTERNS[groups.findIndex((group) => group !== undefined)]?.[0] ?? "text";
    const literal = kind === "text" ? quotedLiteral(match.slice(1, -1)) : { kind, value: match };
    return `${OPEN}${literals.push(literal) - 1}${CLOSE}`;
  }).replace(/[^\S\n]+/g, " ");
  const at = (index: string) => literals[Number(index)] ?? { kind: "text", value: "" };
  const steps: IntentStep[] = [];
  const parts = marked.split(BREAK).map((each) => each.trim().replace(LEADING, ""));
  for (const part of parts.flatMap((each) => savedResult(each, at))) {
    const isClear = termsOf(part.replace(PLACE, " ")).length > 1;
    const step: IntentStep = {
      // The words of a quoted text name no tool, if there are others.
      query: part.replace(PLACE, (_, index) => {
        const literal = at(index);
        return isClear && literal.kind === "text" ? "text" : kindWords(literal);
      }).slice(0, QUERY_MAX),
      text: part.replace(PLACE, (_, index) => at(index).value),
      literals: [...part.matchAll(PLACE)].map(([, index = ""]) => at(index)),
    };
    const text = part.replace(PLACE, " ");
    const before = steps.at(-1);
    // "Read a.txt and b.txt": the second part has the same action as the first.
    const isMore = termsOf(text).length === 0 && step.literals.length > 0;
    if (isMore && before !== undefined) steps.push({ ...step, query: before.query });
    else if (termsOf(step.query).length > 0) steps.push(step);
  }
  return steps.slice(0, STEPS_MAX);
}

/**
 * Splits "save the graph to graph.json" into the step that makes the content, and the one that writes
 * it. Returns other parts unchanged.
 */
function savedResult(part: string, at: (index: string) => Literal): readonly string[] {
  const [, verb = "", content = "", place = "", index = ""] = SAVED.exec(part) ?? [];
  const literals = [...content.matchAll(PLACE)].map(([, one = ""]) => at(one));
  const isText = literals.some(({ kind }) => kind === "text");
  const isNamed = termsOf(content.replace(PLACE, " ")).some((term) => !CONTENTS.has(term));
  if (at(index).kind !== "path" || isText || !isNamed) return [part];
  return [content, `${verb} the content to ${place}`];
}

/** Returns the literal of a quoted text, which may be an address or a path. */
function quotedLiteral(value: string): Literal {
  if (/^https?:\/\/\S+$/.test(value)) return { kind: "url", value };
  const isPath = /^(?:[A-Za-z]:\\|~?\/|\.{1,2}\/)|^[^<>?*]{0,200}\.[A-Za-z]\w{0,4}$/.test(value);
  return { kind: isPath ? "path" : "text", value };
}

function kindWords({ kind, value }: Literal): string {
  if (kind === "text") return value;
  if (kind === "glob") return "files pattern";
  if (kind === "name") return value.replaceAll("/", " ");
  if (kind !== "path") return kind === "url" ? "url" : kind === "email" ? "email" : "";
  const [, end] = /\.(\w{1,5})$/.exec(value) ?? [];
  if (end === undefined) return "folder";
  return `${FILES[end.toLowerCase()] ?? end} file`;
}

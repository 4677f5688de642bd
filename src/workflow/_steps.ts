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

/** The maximum number of steps. A plan has at most 12 tasks; more steps are reported as unmet. */
const STEPS_MAX = 20;
/** The maximum length of a query for one step. */
const QUERY_MAX = 2_000;
/** The kinds of literals. Each text belongs to the first pattern that matches it. */
const PATTERNS: readonly (readonly [Literal["kind"], RegExp])[] = [
  ["text", /"[^"\n]+"|“[^“”\n]+”|`[^`\n]+`|(?<!\w)'[^'\n]+'(?!\w)/],
  ["url", /https?:\/\/[^\s"'<>]*[^\s"'<>.,;:!?)]/],
  ["email", /[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,4}/],
  // A pattern of file names, with a wildcard.
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
const PLACEHOLDER = new RegExp(`${OPEN}(\\d+)${CLOSE}`, "g");
const STEP_END = /\n|(?<![.!?;:,])[.!?;:,]+(?: |$)| (?:and|then|finally) /i;
const LEADING = /^(?:and|then|finally|please|also|next|after that)\s+/i;
/**
 * A part such as "save X to PATH": the verb, the content, the path's placeholder and its number.
 */
const SAVING = new RegExp(
  `^(save|write|put|store|export) (.{1,200}?) (?:to|into|in|as) (${OPEN}(\\d+)${CLOSE})$`,
  "i",
);
/** Terms that refer to the output of an earlier step. */
const CONTENT_TERMS = new Set([
  "content",
  "text",
  "result",
  "output",
  "file",
  "them",
  "find",
  "found",
]);
/** The words that tools use for kinds of files, by file name extension. */
const FILE_WORDS: Readonly<Record<string, string>> = {
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
  const withPlaceholders = intent.replaceAll(/[\uE000\uE001]/g, " ").replace(
    LITERAL,
    (match, ...groups) => {
      const kind = PATTERNS[groups.findIndex((group) => group !== undefined)]?.[0] ?? "text";
      const literal = kind === "text" ? quotedLiteral(match.slice(1, -1)) : { kind, value: match };
      return `${OPEN}${literals.push(literal) - 1}${CLOSE}`;
    },
  ).replace(/[^\S\n]+/g, " ");
  const literalAt = (index: string) => literals[Number(index)] ?? { kind: "text", value: "" };
  const steps: IntentStep[] = [];
  const parts = withPlaceholders.split(STEP_END).map((each) => each.trim().replace(LEADING, ""));
  for (const part of parts.flatMap((each) => splitSaving(each, literalAt))) {
    const hasOwnWords = termsOf(part.replace(PLACEHOLDER, " ")).length > 1;
    const step: IntentStep = {
      // The words of a quoted text do not describe a tool, unless the step has no other words.
      query: part.replace(PLACEHOLDER, (_, index) => {
        const literal = literalAt(index);
        return hasOwnWords && literal.kind === "text" ? "text" : kindWords(literal);
      }).slice(0, QUERY_MAX),
      text: part.replace(PLACEHOLDER, (_, index) => literalAt(index).value),
      literals: [...part.matchAll(PLACEHOLDER)].map(([, index = ""]) => literalAt(index)),
    };
    const text = part.replace(PLACEHOLDER, " ");
    const previous = steps.at(-1);
    // In "read a.txt and b.txt", the second part has no verb, so it repeats the action of the
    // first.
    const hasNoVerb = termsOf(text).length === 0 && step.literals.length > 0;
    if (hasNoVerb && previous !== undefined) steps.push({ ...step, query: previous.query });
    else if (termsOf(step.query).length > 0) steps.push(step);
  }
  return steps.slice(0, STEPS_MAX);
}

/**
 * Splits "save the graph to graph.json" into a step that creates the content and a step that writes
 * the content. Returns other parts unchanged.
 */
function splitSaving(part: string, literalAt: (index: string) => Literal): readonly string[] {
  const [, verb = "", content = "", path = "", index = ""] = SAVING.exec(part) ?? [];
  const literals = [...content.matchAll(PLACEHOLDER)].map(([, number = ""]) => literalAt(number));
  const isText = literals.some(({ kind }) => kind === "text");
  // "save the text to a.txt" needs only one step, because "text" is the output of an earlier step.
  const isNewContent = termsOf(content.replace(PLACEHOLDER, " ")).some((term) =>
    !CONTENT_TERMS.has(term)
  );
  if (literalAt(index).kind !== "path" || isText || !isNewContent) return [part];
  return [content, `${verb} the content to ${path}`];
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
  const [, extension] = /\.(\w{1,5})$/.exec(value) ?? [];
  if (extension === undefined) return "folder";
  return `${FILE_WORDS[extension.toLowerCase()] ?? extension} file`;
}

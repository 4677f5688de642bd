/**
 * Finds unclear phrases in comments, texts for users, test titles and pages, and names that are
 * participles.
 *
 * @module
 */

/** Where a phrase is; each kind is counted separately. */
export type Kind = "comments" | "text" | "tests" | "docs" | "names";

/** A phrase in a file. */
export interface Match {
  readonly kind: Kind;
  readonly line: number;
  /** The rule that the phrase breaks. */
  readonly rule: string;
  readonly text: string;
}

const VERBS = "is was has had it they a an the PML people servers? clients? comes? came stands? " +
  "holds? held ships? waits? runs? ran other all each only goes went another others makes? lies " +
  "lay can must may costs? fits? calls? cannot one do does gives? gave serves? needs? wants? " +
  "follows? looks? passed belongs changes? changed depends counts happens reads? starts? ends? " +
  "asks? answers? this these such would becomes? says? said";
const SUBJECTS =
  "a an the its all each PML servers? clients? calls? others one npm git Deno lists " +
  "questions requests";
const ACTIONS = "ed run read told asked sent shown made kept done put know tell judge pass serve " +
  "answer";

/** Returns the source of a pattern that matches one of some words. */
function anyOf(words: string): string {
  return `(?:${words.split(" ").join("|")})`;
}

/** The rules, each with a pattern of phrases that break it. Questions may begin with `what` or `who`. */
const RULES: readonly (readonly [rule: string, phrase: RegExp])[] = [
  [
    "name the thing, not `what …`",
    new RegExp(String.raw`\b[Ww]hat ${anyOf(VERBS)}\b(?!.*\?\s*$)`),
  ],
  ["report, log, notify or return, not `tell`", /\b(?:[Tt]old|[Tt]ells|[Tt]elling|[Tt]ell of)\b/],
  ["stated, configured or declared, not `said`", /\b[Ss]aid\b/],
  [
    "the caller or the client, not `who` as a subject",
    /(?:^|[.:;,] |\* |\/\/ )(?:Who|Whoever|whoever)\b(?!.*\?\s*$)/,
  ],
  ["no client or an unknown caller, not `nobody`", /\b(?:[Nn]obody|[Ss]omebody)\b/],
  ["is listed or is defined, not `stands`", /\bst(?:ands|ood)\b/],
  ["is valid, keeps or limits, not `holds`", /\b(?:holds|held)\b/],
  ["returns, not `gives`", /\b[Gg]ives\b|\bgiven up\b|\bgive up\b/],
  [
    "next to, until, its own, no longer",
    /\b(?:[Bb]eside|[Tt]ill|of (?:its|their|one's) own|any more)\b/,
  ],
  [
    "a plain verb, not `has a server told`",
    new RegExp(
      String.raw`\b(?:Has|Have) ${anyOf(SUBJECTS)} [^.]{0,60}\b${anyOf(ACTIONS)}\b`,
    ),
  ],
  ["no metaphors", /\b(?:[Hh]ouse|[Rr]ooms?|[Dd]oors?|[Ff]aces?|[Jj]ourney)\b/],
];
const PARTICIPLES =
  /\b(?:const|let|readonly|function|type|interface|class) (said|told|known|found|given|held|kept|wanted|asked|left)\b/g;
const TITLE =
  /(?:Deno\.test|\b(?:it|test|step|scene|[a-z]\w*Test))\(\s*(?:\{\s*name:\s*)?["'`]([^"'`]{12,})["'`]/;
const NAMED_TITLE = /^\s*name: ["'`]([^"'`]{12,})["'`],$/;
const COMMENT = /^(?:\/\/|\*|\/\*)/;

/** Returns the matches in a file, by its path and its text. */
export function matchesIn(path: string, text: string): readonly Match[] {
  return path.endsWith(".md") ? matchesInPage(text) : matchesInCode(path, text);
}

function matchesInPage(text: string): readonly Match[] {
  const plain = text.replace(/```[\s\S]*?```/g, (block) => block.replace(/[^\n]/g, " "));
  const sentences = plain.matchAll(/[A-Z][^.!?|\n]*(?:\n(?!\n)[^.!?|\n]*)*[.!?]/g);
  return [...sentences].flatMap(({ 0: sentence, index }) =>
    match("docs", plain.slice(0, index).split("\n").length, sentence.replace(/\s+/g, " "))
  );
}

function matchesInCode(path: string, text: string): readonly Match[] {
  const isTest = path.endsWith("_test.ts");
  return text.split("\n").flatMap((raw, at) => {
    const line = at + 1;
    const trimmed = raw.trim();
    if (COMMENT.test(trimmed)) return match("comments", line, trimmed);
    const names = [...raw.matchAll(PARTICIPLES)].map(([, name = ""]): Match => ({
      ...{ kind: "names", line, rule: "no participle as a name", text: name },
    }));
    const comment = match("comments", line, /\s\/\/\s(.*)$/.exec(raw)?.[1] ?? "");
    if (isTest) {
      const [, title = ""] = TITLE.exec(raw) ?? NAMED_TITLE.exec(raw) ?? [];
      return [...names, ...comment, ...match("tests", line, title)];
    }
    const texts = [...raw.matchAll(/"([^"\\]{18,})"|`([^`]{18,})`/g)]
      .map(([, quoted, template]) => quoted ?? template ?? "")
      .filter((text) => text.includes(" "));
    return [...names, ...comment, ...texts.flatMap((text) => match("text", line, text))];
  });
}

function match(kind: Kind, line: number, text: string): readonly Match[] {
  const [rule] = RULES.find(([, phrase]) => phrase.test(text)) ?? [];
  return rule === undefined ? [] : [{ kind, line, rule, text: text.trim() }];
}

import assert from "node:assert/strict";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { tokensOf } from "./tokens.ts";

const TOOL = {
  name: "issues__create_issue",
  description: "Create a new issue in a repository. Labels that do not exist yet are made first; " +
    "an assignee has to be a member (HTTP 403 otherwise).\n\nArgs:\n    owner: who owns it",
  inputSchema: {
    $schema: "http://json-schema.org/draft-07/schema#",
    type: "object",
    properties: {
      owner: { type: "string", description: "Account owner of the repository" },
      page_size: { type: "integer", minimum: 1, maximum: 100, default: 30 },
      labels: { type: "array", items: { type: "string" }, description: "Names of labels" },
      since: { anyOf: [{ type: "string", format: "date-time" }, { type: "null" }] },
    },
    required: ["owner", "labels"],
    additionalProperties: false,
  },
};

/** Texts of the kinds that pass a gateway, and the allowed error of each estimate. */
const TEXTS: readonly (readonly [what: string, text: string, off: number])[] = [
  ["a definition", JSON.stringify(TOOL), 0.1],
  ["one with line ends", JSON.stringify(TOOL, null, 2), 0.1],
  ["a list", JSON.stringify(Array.from({ length: 40 }, (_, at) => ({ ...TOOL, at }))), 0.1],
  [
    "hits of a search",
    "issues:create_issue(owner: string, labels: string[], page_size?: integer): object " +
    "[asks, not installed]\n  Create a new issue in a repository\n" +
    "files:read_text_file(path: string, head?: number, tail?: number): string " +
    "[asks]\n  Read the whole of a text file\nAlso: files:stat, files:write_text_file",
    0.1,
  ],
  ["code", tokensOf.toString(), 0.15],
  [
    "prose",
    "What a call may do is decided by rules, not by what a list shows: a tool that is not listed " +
    "can still be called, and one that is listed may still ask the person first.",
    0.1,
  ],
  ["a path and an address", "/srv/data/reports/2024-11-05.csv https://example.com/a?b=c#d", 0.25],
  ["Chinese", "使用必应搜索指定的关键词，并返回搜索结果列表，包括标题、链接、摘要和标识。", 0.15],
  ["Japanese", "指定されたパスのファイルを読み込み、その内容をテキストとして返します。", 0.35],
  ["Korean", "지정한 경로의 파일을 읽고 그 내용을 텍스트로 돌려줍니다.", 0.25],
  ["Russian", "Читает файл по указанному пути и возвращает его содержимое как текст.", 0.25],
  ["Arabic", "يقرأ الملف في المسار المحدد ويعيد محتواه كنص.", 0.3],
  ["German", "Liest die Datei unter dem angegebenen Pfad und gibt ihren Inhalt zurück.", 0.25],
  ["French", "Lit le fichier situé à l'emplacement donné et renvoie son contenu complet.", 0.25],
  ["rulers", `Title\n${"=".repeat(70)}\nText\n${"-".repeat(90)}\nMore\n`, 0.45],
  ["signs", "| a | b |\n| --- | --- |\n| ✅ ok | ⚠️ wait |\n".repeat(8), 0.35],
];

Deno.test("tokensOf() is near the true count of o200k for any text", () => {
  for (const [what, text, off] of TEXTS) {
    const [estimate, count] = [tokensOf(text), countTokens(text)];
    const error = Math.abs(estimate / count - 1);
    assert.ok(error <= off, `${what}: ${estimate} for ${count}`);
  }
});

Deno.test("tokensOf() never takes back more than a few tokens for a longer text", () => {
  const text = TEXTS.map(([, each]) => each.slice(0, 400)).join("\n");
  let before = 0;
  for (let end = 0; end <= text.length; end += 3) {
    const estimate = tokensOf(text.slice(0, end));
    assert.ok(estimate >= before - 3, `${before}, then ${estimate} at ${end}`);
    before = estimate;
  }
  assert.deepEqual(["", " ", "a", "a b"].map(tokensOf), [0, 1, 1, 2]);
});

Deno.test("tokensOf() takes as long as the text is, and counts a hostile one as something", () => {
  const million = (part: string) => part.repeat(Math.ceil(1_000_000 / part.length));
  const hostile = [
    "a",
    "A",
    "Aa",
    "aé",
    "e\u0301",
    "'",
    '"',
    " ",
    "\n",
    ". ",
    "A9",
    "字",
    "\ud800",
  ];
  for (const part of [...hostile, '{"a":"b"},', "a".repeat(50_000) + "é"]) {
    const text = million(part);
    const since = performance.now();
    const estimate = tokensOf(text);
    // This takes some 0.2 s. A matcher that reads everything again and again would take minutes.
    assert.ok(performance.now() - since < 5_000, `${JSON.stringify(part.slice(0, 9))} is slow`);
    assert.ok(estimate > 5_000 && estimate <= text.length, `${part.slice(0, 9)}: ${estimate}`);
  }
});

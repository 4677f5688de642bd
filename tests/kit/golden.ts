/**
 * Compares texts of PML with `tests/golden/`: one file for each command or subject, with a section for
 * each text. `deno task golden FILE` writes the present texts of a test file.
 *
 * @module
 */

import assert from "node:assert/strict";
import { tmpdir } from "node:os";
import { VERSION } from "../../src/core/version.ts";
import { repoFile } from "./pml_command.ts";

const FOLDER = repoFile("tests/golden");
const HEADING = /^=== (.+)$/m;

/** Values that differ between runs, by the placeholder that replaces them. */
export type Values = Readonly<Record<string, string>>;

/**
 * Asserts that a text is that of a section.
 *
 * Temporary paths, ports, hashes, times and the version of PML have placeholders; `values` adds more.
 *
 * @param at The name of the file and the title of the section: `"init/no client is installed"`.
 */
export function assertGolden(at: string, text: string | undefined, values: Values = {}): void {
  assert.ok(text !== undefined, `no text for "${at}"`);
  const [file = "", ...title] = at.split("/");
  const section = title.join("/");
  const path = `${FOLDER}/${file}.txt`;
  const actual = withPlaceholders(text, values);
  const sections = read(path);
  if (Deno.env.get("PML_GOLDEN") === "write") {
    sections.set(section, actual);
    const all = [...sections].sort(([a], [b]) => a < b ? -1 : 1);
    const texts = all.map(([title, text]) => `=== ${title}\n${text}\n`);
    Deno.mkdirSync(FOLDER, { recursive: true });
    Deno.writeTextFileSync(path, texts.join("\n"));
    return;
  }
  try {
    assert.equal(actual, sections.get(section));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`tests/golden/${file}.txt has another text for "${section}":\n${reason}`);
  }
}

/** Asserts that a rejection has the message of a section, with its code and hint if it has them. */
export async function assertGoldenError(at: string, work: Promise<unknown>): Promise<void> {
  const error = await work.then(
    () => assert.fail(`${at}: no error`),
    (reason: Error & { readonly code?: string; readonly hint?: string }) => reason,
  );
  const { code, message, hint } = error;
  const first = code === undefined ? message : `${code}: ${message}`;
  assertGolden(at, hint === undefined ? first : `${first}\n${hint}`);
}

/** Returns the titles of a golden file. */
export function titlesOf(path: string): readonly string[] {
  return [...read(path).keys()];
}

/** Returns a text with placeholders for all that differs between runs. */
function withPlaceholders(text: string, values: Values): string {
  let made = text.replaceAll("\r\n", "\n");
  // A short value can be a part of the random name of a temporary folder.
  for (const [name, value] of Object.entries(values)) {
    made = made.replaceAll(new RegExp(`(?<!\\w)${escaped(value)}(?!\\w)`, "g"), `<${name}>`);
  }
  const temporary = escaped(Deno.realPathSync(tmpdir()));
  return made
    .replaceAll(new RegExp(`${temporary}/pml-[0-9a-f]{16}-\\w{6}`, "g"), "<ROOT>")
    .replaceAll(new RegExp(`${temporary}/[\\w-]+`, "g"), "<TMP>")
    .replaceAll(repoFile(""), "<REPOSITORY>/")
    .replaceAll(/\b(127\.0\.0\.1|localhost):\d+/g, "$1:<PORT>")
    .replaceAll(/\b[0-9a-f]{32,}\b/g, "<HASH>")
    .replaceAll(/\b\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z/g, "<TIME>")
    .replaceAll(new RegExp(`\\bPML ${escaped(VERSION)}\\b`, "g"), "PML <VERSION>")
    .trimEnd();
}

function escaped(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

function read(path: string): Map<string, string> {
  let text: string;
  try {
    text = Deno.readTextFileSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return new Map();
    throw error;
  }
  const [, ...parts] = text.split(HEADING);
  const titles = parts.filter((_, at) => at % 2 === 0);
  return new Map(titles.map((title, at) => [title, (parts[at * 2 + 1] ?? "").trim()]));
}

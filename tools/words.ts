/**
 * `deno task words`: counts unclear phrases in each file, and fails if a file has more of one kind than
 * in `tools/words/counts.json`. Counts are absolute, so that added lines do not dilute them. `--write`
 * writes the present counts.
 *
 *     deno run -A tools/words.ts [--write] [--list PREFIX]
 *
 * @module
 */

import { walkFiles } from "./words/files.ts";
import { type Kind, matchesIn } from "./words/phrases.ts";

const COUNTS = new URL("words/counts.json", import.meta.url);

/** The numbers of matches by file and kind, without zeros. */
type Counts = Readonly<Record<string, Partial<Record<Kind, number>>>>;

/** Counts the matches of all files. Prints the matches in files whose path has a prefix. */
async function countAll(prefix: string | undefined): Promise<Counts> {
  const counts: Record<string, Partial<Record<Kind, number>>> = {};
  for await (const { path, text } of walkFiles()) {
    const matches = matchesIn(path, text);
    if (matches.length === 0) continue;
    const kinds: Partial<Record<Kind, number>> = counts[path] = {};
    for (const { kind, line, rule, text } of matches) {
      kinds[kind] = (kinds[kind] ?? 0) + 1;
      if (prefix !== undefined && path.startsWith(prefix)) {
        console.log(`${path}:${line}: [${kind}] ${rule}: ${text.slice(0, 160)}`);
      }
    }
  }
  return counts;
}

/** Returns a line for each kind of which a file has more matches than allowed. */
export function increasesOf(now: Counts, before: Counts): readonly string[] {
  return Object.entries(now).flatMap(([path, kinds]) =>
    Object.entries(kinds).flatMap(([kind, count]) => {
      const allowed = before[path]?.[kind as Kind] ?? 0;
      return count > allowed ? [`${path}: ${count} ${kind}, ${allowed} allowed`] : [];
    })
  );
}

if (import.meta.main) {
  const at = Deno.args.indexOf("--list");
  const now = await countAll(at < 0 ? undefined : Deno.args[at + 1] ?? "");
  const before: Counts = JSON.parse(await Deno.readTextFile(COUNTS).catch(() => "{}"));
  if (Deno.args.includes("--write")) {
    const sorted = Object.fromEntries(Object.entries(now).sort());
    await Deno.writeTextFile(COUNTS, `${JSON.stringify(sorted, undefined, 2)}\n`);
  } else {
    const lines = increasesOf(now, before);
    for (const line of lines) console.error(line);
    if (lines.length > 0) {
      console.error("Write these in plain English: `deno run -A tools/words.ts --list PATH`");
      Deno.exitCode = 1;
    }
  }
}

/**
 * `deno task words`: compares the phrases of each file that readers stumble over with the counts in
 * `tools/words/counts.json`. It fails where a file has more of one kind. Counts are absolute, so that
 * added lines do not dilute them. `--write` lowers the counts to the present ones.
 *
 *     deno run -A tools/words.ts [--write] [--list PREFIX]
 *
 * @module
 */

import { walkFiles } from "./words/files.ts";
import { type Kind, matchesIn } from "./words/phrases.ts";

const COUNTS = new URL("words/counts.json", import.meta.url);

/** The number of matches of a file, by kind; without those that have none. */
type Counts = Readonly<Record<string, Partial<Record<Kind, number>>>>;

/** Returns the counts of all files, and prints matches of paths with a prefix. */
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

/** Returns a line for each kind of each file that has more matches than before. */
export function grown(now: Counts, before: Counts): readonly string[] {
  return Object.entries(now).flatMap(([path, kinds]) =>
    Object.entries(kinds).flatMap(([kind, count]) => {
      const most = before[path]?.[kind as Kind] ?? 0;
      return count > most ? [`${path}: ${count} ${kind}, ${most} allowed`] : [];
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
    const lines = grown(now, before);
    for (const line of lines) console.error(line);
    if (lines.length > 0) {
      console.error("Write these in plain English: `deno run -A tools/words.ts --list PATH`");
      Deno.exitCode = 1;
    }
  }
}

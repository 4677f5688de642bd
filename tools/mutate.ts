/**
 * `deno task mutate`: takes one guard away at a time, in a copy of the project, and tells whether
 * the test that is named for it turns red.
 *
 *     deno task mutate [--only NAME]... [--jobs N] [--json] [--write]
 *
 * With `--only`, `--write` leaves the other rows of the page as they are.
 *
 * @module
 */

import { parseArgs } from "node:util";
import { CHAPTERS } from "./mutate/guards.ts";
import type { Mutant } from "./mutate/mutant.ts";
import { lineOf, pageOf, triedIn } from "./mutate/page.ts";
import { Tree } from "./mutate/tree.ts";
import { Trial, type Tried } from "./mutate/try.ts";

const ROOT = new URL("../", import.meta.url).pathname;
const PAGE = `${ROOT}docs/security-tests.md`;

if (import.meta.main) Deno.exitCode = await mutate(Deno.args);

/** Tries what was asked for; 1 if any test does not turn red. */
async function mutate(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: "string", multiple: true },
      jobs: { type: "string", default: "1" },
      json: { type: "boolean", default: false },
      write: { type: "boolean", default: false },
    },
  });
  const all = CHAPTERS.flatMap(({ mutants }) => mutants);
  const chosen = all.filter(({ name }) => values.only?.includes(name) ?? true);
  if (chosen.length === 0) {
    console.error(`No guard has this name: ${values.only?.join(", ")}`);
    return 2;
  }
  const tried = await tryAll(chosen, {
    root: ROOT,
    jobs: Number(values.jobs),
    onTried: (one) => values.json || console.log(lineOf(one)),
  });
  if (values.json) console.log(JSON.stringify(tried, undefined, 2));
  if (values.write) {
    const others = all.filter((mutant) => !chosen.includes(mutant));
    const known = triedIn(await Deno.readTextFile(PAGE), others);
    await Deno.writeTextFile(PAGE, pageOf(CHAPTERS, [...known, ...tried]));
  }
  const left = tried.filter(({ fate }) => fate !== "red" && fate !== "held twice");
  console.error(
    `${tried.length - left.length} of ${tried.length} guards are held by a test`,
  );
  return left.length === 0 ? 0 : 1;
}

/** Tries mutants, as many at once as there are jobs, each job in a copy of its own. */
export async function tryAll(
  mutants: readonly Mutant[],
  { root, jobs, onTried = () => {} }: {
    readonly root: string;
    readonly jobs: number;
    readonly onTried?: (tried: Tried) => void;
  },
): Promise<readonly Tried[]> {
  const tried: Tried[] = [];
  const queue = [...mutants.entries()];
  await Promise.all(Array.from({ length: Math.min(jobs, mutants.length) }, async () => {
    await using tree = await Tree.copyOf(root);
    const trial = new Trial(tree);
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const [at, mutant] = next;
      tried[at] = await trial.of(mutant);
      onTried(tried[at]);
    }
  }));
  return tried;
}

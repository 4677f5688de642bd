/**
 * `deno task guards`: takes one guard out at a time, in a copy of the project, and reports whether
 * the test that is named for it fails.
 *
 *     deno task guards [--only NAME]... [--jobs N] [--json]
 *
 * A guard is a statement below a comment `// guard: NAME`; `tools/guards/tests.json` names its test.
 *
 * @module
 */

import { parseArgs } from "node:util";
import { type Guard, guardsIn, type GuardTest } from "./guards/guard.ts";
import { Tree } from "./guards/tree.ts";
import listed from "./guards/tests.json" with { type: "json" };

const ROOT = new URL("../", import.meta.url).pathname;
const TEST_MS = 240_000;

/** The tests of guards, by the guards' names. */
export const TESTS: Readonly<Record<string, GuardTest>> = listed;

/** A guard that was taken out. */
export interface Tried {
  readonly name: string;
  readonly path: string;
  readonly line: number;
  /** Why no test noticed that; undefined if its test failed, as it should. */
  readonly problem?: string;
}

if (import.meta.main) Deno.exitCode = await guards(Deno.args);

/** Tries the chosen guards. Returns 1 if a test does not notice that its guard is missing. */
async function guards(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: "string", multiple: true },
      jobs: { type: "string", default: "1" },
      json: { type: "boolean", default: false },
    },
  });
  const all = await allGuards(ROOT);
  const chosen = all.filter(({ name }) => values.only?.includes(name) ?? true);
  if (chosen.length === 0) {
    console.error(`No guard has this name: ${values.only?.join(", ")}`);
    return 2;
  }
  const tried = await tryAll(chosen, {
    root: ROOT,
    tests: TESTS,
    jobs: Number(values.jobs),
    onTried: (one) => values.json || console.log(lineOf(one)),
  });
  if (values.json) console.log(JSON.stringify(tried, undefined, 2));
  const unnoticed = tried.filter(({ problem }) => problem !== undefined);
  console.error(`${tried.length - unnoticed.length} of ${tried.length} guards have a test`);
  return unnoticed.length === 0 ? 0 : 1;
}

/** Returns the guards of a project. Throws if two have one name. */
export async function allGuards(root: string): Promise<readonly Guard[]> {
  await using tree = await Tree.copyOf(root);
  const all = [...tree.sources].flatMap(([path, text]) => guardsIn(path, text));
  const names = new Set<string>();
  for (const { name, path, line } of all) {
    if (names.has(name)) throw new Error(`${path}:${line}: a second guard has the name ${name}`);
    names.add(name);
  }
  return all;
}

/** Takes guards out, as many at once as there are jobs, each job in a separate copy. */
export async function tryAll(guards: readonly Guard[], { root, tests, jobs, onTried = () => {} }: {
  readonly root: string;
  readonly tests: Readonly<Record<string, GuardTest>>;
  readonly jobs: number;
  readonly onTried?: (tried: Tried) => void;
}): Promise<readonly Tried[]> {
  const tried: Tried[] = [];
  const queue = [...guards.entries()];
  await Promise.all(Array.from({ length: Math.min(jobs, guards.length) }, async () => {
    await using tree = await Tree.copyOf(root);
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const [at, guard] = next;
      const { name, path, line } = guard;
      const problem = await withoutGuard(tree, guard, tests[name]);
      tried[at] = { name, path, line, ...problem !== undefined && { problem } };
      onTried(tried[at]);
    }
  }));
  return tried;
}

/** Returns a line about a guard that was taken out. */
export function lineOf({ name, path, line, problem }: Tried): string {
  return `${problem === undefined ? "noticed" : "NOT NOTICED"} ${name} (${path}:${line})${
    problem === undefined ? "" : `: ${problem}`
  }`;
}

/** Runs the test of a guard without the guard. Returns why it does not fail as it should. */
async function withoutGuard(
  tree: Tree,
  { path, without }: Guard,
  test: GuardTest | undefined,
): Promise<string | undefined> {
  if (test === undefined) return "tools/guards/tests.json names no test";
  await tree.write(path, without);
  try {
    return await bundled(tree, path) ?? await failing(tree, test);
  } finally {
    await tree.write(path, tree.sources.get(path) ?? "");
    await bundled(tree, path);
  }
}

/**
 * Bundles the programs of sandbox children again if the file is part of one. Returns why it cannot.
 */
async function bundled(tree: Tree, path: string): Promise<string | undefined> {
  if (!/\/boot\/|^builtin\//.test(path)) return undefined;
  const { code, output } = await tree.deno(["run", "-A", "tools/assets.ts"], TEST_MS);
  return code === 0 ? undefined : `it cannot be bundled:\n${output}`;
}

/** Returns why a test does not fail; undefined if it does. */
async function failing(tree: Tree, { test, title }: GuardTest): Promise<string | undefined> {
  const report = await Deno.makeTempFile({ suffix: ".xml" });
  try {
    const args = ["test", "-A", "--no-check", `--junit-path=${report}`, "--filter", title, test];
    const { code, output } = await tree.deno(args, TEST_MS);
    if (code === undefined) return `its test took longer than ${TEST_MS} ms`;
    const cases = (await Deno.readTextFile(report)).match(/<testcase .*?(?=<testcase|$)/gs) ?? [];
    const ran = cases.filter((one) => !one.includes("<skipped"));
    if (ran.length === 0) return `no test of ${test} ran: ${title}\n${output}`;
    return ran.some((one) => one.includes("<failure")) ? undefined : `it passes: ${test}: ${title}`;
  } finally {
    await Deno.remove(report);
  }
}

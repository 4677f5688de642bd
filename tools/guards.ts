/**
 * `deno task guards`: removes one guard at a time, in a copy of the project, and reports whether the
 * test of the guard fails.
 *
 *     deno task guards [--only NAME]... [--jobs N] [--json]
 *
 * A guard is a statement below a comment `// guard: NAME`; `tools/guards/tests.json` lists its test.
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

/** The result of removing a guard. */
export interface GuardResult {
  readonly name: string;
  readonly path: string;
  readonly line: number;
  /** Why the test did not notice; undefined if the test failed, as it should. */
  readonly problem?: string;
}

if (import.meta.main) Deno.exitCode = await guards(Deno.args);

/** Checks the chosen guards. Returns 1 if a test does not notice that its guard is missing. */
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
    console.error(`There is no guard with this name: ${values.only?.join(", ")}`);
    return 2;
  }
  const results = await checkAll(chosen, {
    root: ROOT,
    tests: TESTS,
    jobs: Number(values.jobs),
    onResult: (result) => values.json || console.log(lineOf(result)),
  });
  if (values.json) console.log(JSON.stringify(results, undefined, 2));
  const unnoticed = results.filter(({ problem }) => problem !== undefined);
  console.error(`${results.length - unnoticed.length} of ${results.length} guards have a test`);
  return unnoticed.length === 0 ? 0 : 1;
}

/** Returns the guards of a project. Throws if two have the same name. */
export async function allGuards(root: string): Promise<readonly Guard[]> {
  await using tree = await Tree.copyOf(root);
  const all = [...tree.sources].flatMap(([path, text]) => guardsIn(path, text));
  const names = new Set<string>();
  for (const { name, path, line } of all) {
    if (names.has(name)) throw new Error(`${path}:${line}: another guard has the name ${name} too`);
    names.add(name);
  }
  return all;
}

/** Removes each guard and runs its test, in `jobs` copies of the project at once. */
export async function checkAll(
  guards: readonly Guard[],
  { root, tests, jobs, onResult = () => {} }: {
    readonly root: string;
    readonly tests: Readonly<Record<string, GuardTest>>;
    readonly jobs: number;
    readonly onResult?: (tried: GuardResult) => void;
  },
): Promise<readonly GuardResult[]> {
  const results: GuardResult[] = [];
  const queue = [...guards.entries()];
  await Promise.all(Array.from({ length: Math.min(jobs, guards.length) }, async () => {
    await using tree = await Tree.copyOf(root);
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const [index, guard] = next;
      const { name, path, line } = guard;
      const problem = await testWithoutGuard(tree, guard, tests[name]);
      results[index] = { name, path, line, ...problem !== undefined && { problem } };
      onResult(results[index]);
    }
  }));
  return results;
}

/** Formats a result as a line. */
export function lineOf({ name, path, line, problem }: GuardResult): string {
  return `${problem === undefined ? "noticed" : "NOT NOTICED"} ${name} (${path}:${line})${
    problem === undefined ? "" : `: ${problem}`
  }`;
}

/** Removes a guard and runs its test. Returns why the test does not fail as it should. */
async function testWithoutGuard(
  tree: Tree,
  { path, without }: Guard,
  test: GuardTest | undefined,
): Promise<string | undefined> {
  if (test === undefined) return "tools/guards/tests.json lists no test for it";
  await tree.write(path, without);
  try {
    return await bundleAgain(tree, path) ?? await runGuardTest(tree, test);
  } finally {
    await tree.write(path, tree.sources.get(path) ?? "");
    await bundleAgain(tree, path);
  }
}

/**
 * Bundles the programs of sandbox children again if the file is part of one. Returns the error if
 * bundling fails.
 */
async function bundleAgain(tree: Tree, path: string): Promise<string | undefined> {
  if (!/\/boot\/|^builtin\//.test(path)) return undefined;
  const { code, output } = await tree.deno(["run", "-A", "tools/assets.ts"], TEST_MS);
  return code === 0 ? undefined : `it cannot be bundled:\n${output}`;
}

/** Runs a test. Returns why it does not fail; undefined if it fails. */
async function runGuardTest(tree: Tree, { test, title }: GuardTest): Promise<string | undefined> {
  const report = await Deno.makeTempFile({ suffix: ".xml" });
  try {
    const args = ["test", "-A", "--no-check", `--junit-path=${report}`, "--filter", title, test];
    const { code, output } = await tree.deno(args, TEST_MS);
    if (code === undefined) return `its test took longer than ${TEST_MS} ms`;
    const cases = (await Deno.readTextFile(report)).match(/<testcase .*?(?=<testcase|$)/gs) ?? [];
    const ran = cases.filter((testCase) => !testCase.includes("<skipped"));
    if (ran.length === 0) return `no test of ${test} ran: ${title}\n${output}`;
    return ran.some((testCase) => testCase.includes("<failure"))
      ? undefined
      : `it passes: ${test}: ${title}`;
  } finally {
    await Deno.remove(report);
  }
}

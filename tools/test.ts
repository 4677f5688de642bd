/**
 * `deno task test`: runs all tests. Several files share one module, and thus one loaded and compiled
 * PML: Deno loads everything again for each file that it is given, which takes 0.3 to 0.6 s of
 * processor time for most files.
 *
 *     deno task test [--jobs N] [PART OF A PATH]...
 *
 * @module
 */

import { once } from "node:events";
import { join, relative } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { parseArgs } from "node:util";

const ROOT = new URL("../", import.meta.url).pathname;
const FOLDERS = ["tests", "tools", "src", "builtin", "hub"];
/** Folders without tests of PML. */
const OTHERS = ["tests/clients", "tests/fixtures"];
/** How many files share a module: those that start PML, and others. */
const TOGETHER = { whole: 8, parts: 40 };

/**
 * The files that get their own module: they take longest, measure memory, have hooks for all their
 * tests, or change tables before PML is loaded. They start first.
 */
const ALONE = [
  "tests/clients_found_test.ts",
  "tests/conformance/auth_test.ts",
  "tests/real_servers_test.ts",
  "tests/hung_servers_test.ts",
  "tests/allocation_test.ts",
  "tests/serve_memory_test.ts",
  "src/workflow/type_check_test.ts",
  "tests/made_up_check_test.ts",
  "tests/made_up_kind_test.ts",
  "tests/made_up_source_test.ts",
  "hub/src/store/_stores_test.ts",
];

/** Returns all test files by their paths from the root. */
export async function allTests(): Promise<readonly string[]> {
  return (await Promise.all(FOLDERS.map(testFiles))).flat();
}

/** Returns the test files of a folder, sorted. */
async function testFiles(folder: string): Promise<readonly string[]> {
  const files: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(join(ROOT, folder))) {
    const path = `${folder}/${name}`;
    if (isDirectory) files.push(...OTHERS.includes(path) ? [] : await testFiles(path));
    else if (name.endsWith("_test.ts")) files.push(path);
  }
  return files.sort();
}

/** Divides files among modules: longest first, then those that start PML, then the others. */
export function groupsOf(files: readonly string[]): readonly (readonly string[])[] {
  const alone = ALONE.filter((file) => files.includes(file));
  const shared = files.filter((file) => !ALONE.includes(file));
  const whole = shared.filter((file) => file.startsWith("tests/"));
  const parts = shared.filter((file) => !file.startsWith("tests/"));
  return [
    ...alone.map((file) => [file]),
    ...chunks(whole, TOGETHER.whole),
    ...chunks(parts, TOGETHER.parts),
  ];
}

function chunks(files: readonly string[], size: number): readonly (readonly string[])[] {
  const count = Math.ceil(files.length / size);
  // Neighbours are alike, so each module gets different files.
  return Array.from({ length: count }, (_, at) => files.filter((_, each) => each % count === at));
}

/** Returns a module that imports test files, and puts the path of its file before each title. */
function moduleOf(files: readonly string[]): string {
  const paths = files.map((file) => [file, new URL(file, `file://${ROOT}`).href]);
  return `const test = Deno.test;
for (const [path, url] of ${JSON.stringify(paths)}) {
  const named = (first) =>
    typeof first === "string"
      ? \`\${path}: \${first}\`
      : typeof first === "function"
      ? first
      : { ...first, name: \`\${path}: \${first.name}\` };
  Deno.test = Object.assign((first, ...rest) => test(named(first), ...rest), test, {
    ignore: (first, ...rest) => test.ignore(named(first), ...rest),
  });
  await import(url);
}
Deno.test = test;
`;
}

/** How long the last output of a process may take after its end, in milliseconds. */
const LATE_MS = 2_000;
/** What Deno prints after the tests of a module, without failed tests and with some. */
const DETAILS = " ERRORS ";
const SUMMARY =
  /^(?:ok|FAILED) \| (\d+) passed(?: \((\d+) steps?\))? \| (\d+) failed(?: \((\d+) steps?\))?(?: \| (\d+) ignored)?/;

/** The results of tests. */
export interface Results {
  readonly passed: number;
  readonly steps: number;
  readonly failed: number;
  readonly ignored: number;
  /** The errors of failed tests, as Deno prints them. */
  readonly details: string;
}

/** Reads the output of `deno test` about one module, and passes each line about a test on. */
export class ModuleOutput {
  readonly #details: string[] = [];
  readonly #print: (line: string) => void;
  #counts: readonly number[] | undefined;

  constructor(print: (line: string) => void) {
    this.#print = print;
  }

  /** Reads the next line. */
  add(line: string): void {
    const summary = SUMMARY.exec(line);
    if (summary !== null) this.#counts = summary.slice(1).map((count = "0") => Number(count));
    else if (this.#details.length > 0 || line === DETAILS) this.#details.push(line);
    else if (line.trim() !== "") this.#print(line);
  }

  /** The results; undefined if Deno ended before the tests did. */
  get results(): Results | undefined {
    if (this.#counts === undefined) return undefined;
    const [passed = 0, steps = 0, failed = 0, failedSteps = 0, ignored = 0] = this.#counts;
    const details = this.#details.join("\n");
    return { passed, steps: steps + failedSteps, failed, ignored, details };
  }
}

/**
 * Runs a module in its own process. A start of a program copies the page tables of its parent:
 * with several modules in one process of a gigabyte, this took 5 to 10% of the processor time.
 */
async function runModule(path: string): Promise<Results | undefined> {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["test", "-A", "--no-check", "--parallel", path],
    cwd: ROOT,
    env: { DENO_JOBS: "1" },
    stdout: "piped",
  }).spawn();
  const output = new ModuleOutput((line) => console.log(line));
  const lines = createInterface({ input: Readable.fromWeb(child.stdout as never) });
  lines.on("line", (line) => output.add(line));
  const closed = once(lines, "close");
  const { success } = await child.status;
  // A process that a test left behind may keep the pipe open.
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, LATE_MS);
  await Promise.race([closed, late.promise]);
  clearTimeout(timer);
  const { results } = output;
  // Something else than a test failed.
  return results && { ...results, failed: Math.max(results.failed, success ? 0 : 1) };
}

/** Runs a module, and again if Deno itself crashed. */
async function resultsOf(path: string): Promise<Results> {
  for (let tries = 0; tries < 2; tries++) {
    const results = await runModule(path);
    if (results !== undefined) return results;
    console.log(`Deno ended before the tests of ${path} did`);
  }
  return { passed: 0, steps: 0, failed: 1, ignored: 0, details: `Deno ends early: ${path}` };
}

/** Returns the last line, which is like that of one run of Deno. */
function summaryOf(all: readonly Results[], ms: number): string {
  const sum = (name: Exclude<keyof Results, "details">) =>
    all.reduce((total, results) => total + results[name], 0);
  const failed = sum("failed");
  const seconds = Math.round(ms / 1_000);
  return `${failed === 0 ? "ok" : "FAILED"} | ${sum("passed")} passed (${sum("steps")} steps) | ` +
    `${failed} failed | ${sum("ignored")} ignored (${Math.floor(seconds / 60)}m${seconds % 60}s)`;
}

async function run(): Promise<number> {
  const { values: { jobs }, positionals } = parseArgs({
    args: Deno.args,
    options: { jobs: { type: "string", default: `${navigator.hardwareConcurrency + 2}` } },
    allowPositionals: true,
  });
  const since = performance.now();
  const chosen = (await allTests()).filter((file) =>
    positionals.length === 0 || positionals.some((part) => file.includes(part))
  );
  const folder = await Deno.makeTempDir({ prefix: "pml-tests-" });
  try {
    const modules = await Promise.all(
      groupsOf(chosen).map(async (files, at) => {
        // PML runs inside of a `_test.ts`.
        const path = join(folder, `${`${at}`.padStart(3, "0")}_test.ts`);
        await Deno.writeTextFile(path, moduleOf(files));
        return relative(ROOT, path);
      }),
    );
    const all: Results[] = [];
    const waiting = modules.values();
    const job = async () => {
      for (const path of waiting) all.push(await resultsOf(path));
    };
    await Promise.all(Array.from({ length: Number(jobs) }, job));
    for (const { details } of all) if (details !== "") console.log(`\n${details}`);
    console.log(`\n${summaryOf(all, performance.now() - since)}`);
    return all.every(({ failed }) => failed === 0) ? 0 : 1;
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

if (import.meta.main) Deno.exitCode = await run();

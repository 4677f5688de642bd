/**
 * `deno task test`: runs all tests. Several test files are imported by one module, so that PML is
 * loaded and compiled once for them. Deno would load everything again for each file, which takes
 * 0.3 to 0.6 s of processor time for most files.
 *
 *     deno task test [--jobs N] [PART OF A PATH]...
 *
 * Without `--jobs`, more modules run at once while processors are idle.
 *
 * @module
 */

import { once } from "node:events";
import { join, relative } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { parseArgs, stripVTControlCharacters } from "node:util";
import settings from "../deno.json" with { type: "json" };
import { runJobs } from "./jobs.ts";
import { bundle } from "./npm.ts";

const ROOT = new URL("../", import.meta.url).pathname;
const FOLDERS = ["tests", "tools", "src", "builtin", "hub", "page"];
/** Folders whose files are not tests of PML. */
const EXCLUDED_FOLDERS = ["tests/clients", "tests/fixtures"];
/** The number of files per module: of tests of the whole program, and of tests of its parts. */
const FILES_PER_MODULE = { whole: 8, parts: 40 };

/**
 * The files with their own module, because they take long, measure memory, have hooks for all their
 * tests, or change tables before PML is loaded. They start first.
 */
const OWN_MODULE = [
  "tools/guards_test.ts",
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

/** Returns the paths of all test files, relative to the root. */
export async function allTests(): Promise<readonly string[]> {
  return (await Promise.all(FOLDERS.map(testFiles))).flat();
}

/** Returns the test files of a folder, sorted. */
async function testFiles(folder: string): Promise<readonly string[]> {
  const files: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(join(ROOT, folder))) {
    const path = `${folder}/${name}`;
    if (isDirectory) files.push(...EXCLUDED_FOLDERS.includes(path) ? [] : await testFiles(path));
    else if (name.endsWith("_test.ts")) files.push(path);
  }
  return files.sort();
}

/** Divides files into modules: `OWN_MODULE` first, then tests of the program, then tests of parts. */
export function groupsOf(files: readonly string[]): readonly (readonly string[])[] {
  const ownModuleFiles = OWN_MODULE.filter((file) => files.includes(file));
  const shared = files.filter((file) => !OWN_MODULE.includes(file));
  const whole = shared.filter((file) => file.startsWith("tests/"));
  const parts = shared.filter((file) => !file.startsWith("tests/"));
  return [
    ...ownModuleFiles.map((file) => [file]),
    ...chunks(whole, FILES_PER_MODULE.whole),
    ...chunks(parts, FILES_PER_MODULE.parts),
  ];
}

function chunks(files: readonly string[], size: number): readonly (readonly string[])[] {
  const count = Math.ceil(files.length / size);
  // Distributes files in turn, because neighbouring files take similar time.
  return Array.from(
    { length: count },
    (_, chunk) => files.filter((_, index) => index % count === chunk),
  );
}

/** Returns the code of a module that imports test files, and adds the path of the file to titles. */
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

/** How long to wait for output after the end of a process, in milliseconds. */
const LATE_MS = 2_000;
/** The maximum number of modules that run at once, per processor. */
const MAX_MODULES_EACH = 5;
/** The line before the errors, and the last line, in the output of Deno. */
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

/** Parses the output of `deno test` for one module, and prints the lines about tests. */
export class ModuleOutput {
  readonly #details: string[] = [];
  readonly #print: (line: string) => void;
  #counts: readonly number[] | undefined;

  constructor(print: (line: string) => void) {
    this.#print = print;
  }

  /** Parses the next line. */
  add(line: string): void {
    // Deno colours its output unless NO_COLOR is set.
    const text = stripVTControlCharacters(line);
    const summary = SUMMARY.exec(text);
    if (summary !== null) this.#counts = summary.slice(1).map((count = "0") => Number(count));
    else if (this.#details.length > 0 || text === DETAILS) this.#details.push(line);
    else if (text.trim() !== "") this.#print(line);
  }

  /** The results; undefined if Deno ended before the tests were complete. */
  get results(): Results | undefined {
    if (this.#counts === undefined) return undefined;
    const [passed = 0, steps = 0, failed = 0, failedSteps = 0, ignored = 0] = this.#counts;
    const details = this.#details.join("\n");
    return { passed, steps: steps + failedSteps, failed, ignored, details };
  }
}

/**
 * Runs a module in its own process. Starting a program copies the page tables of the parent process:
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
  // If Deno reports a failure but no failed test, counts one.
  return results && { ...results, failed: Math.max(results.failed, success ? 0 : 1) };
}

/** Runs a module. Runs it a second time if Deno itself crashes. */
async function resultsOf(path: string): Promise<Results> {
  for (let tries = 0; tries < 2; tries++) {
    const results = await runModule(path);
    if (results !== undefined) return results;
    console.log(`Deno ended before the tests of ${path} were complete`);
  }
  return {
    passed: 0,
    steps: 0,
    failed: 1,
    ignored: 0,
    details: `Deno ended before the tests were complete: ${path}`,
  };
}

/** Returns the summary of all results, in the format of `deno test`. */
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
    options: { jobs: { type: "string" } },
    allowPositionals: true,
  });
  const since = performance.now();
  const chosen = (await allTests()).filter((file) =>
    positionals.length === 0 || positionals.some((part) => file.includes(part))
  );
  const folder = await Deno.makeTempDir({ prefix: "pml-tests-" });
  // Inside the checkout, so that other processes find its `deno.json` with the packages.
  await Deno.mkdir(join(ROOT, "dist"), { recursive: true });
  const code = await Deno.makeTempDir({ prefix: "tests-", dir: join(ROOT, "dist") });
  try {
    // Tests start the bundled code of the npm package, which takes 20% less processor time.
    await bundle(Object.keys(settings.imports), code);
    Deno.env.set("PML_TEST_MAIN", join(code, "mod.js"));
    const modules = await Promise.all(
      groupsOf(chosen).map(async (files, at) => {
        // PML runs inside a module whose name ends with `_test.ts`.
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
    const { hardwareConcurrency: processors } = navigator;
    const { least, most } = jobs === undefined
      ? { least: processors + 2, most: processors * MAX_MODULES_EACH }
      : { least: Number(jobs), most: Number(jobs) };
    await runJobs(job, { least, most });
    for (const { details } of all) if (details !== "") console.log(`\n${details}`);
    console.log(`\n${summaryOf(all, performance.now() - since)}`);
    return all.every(({ failed }) => failed === 0) ? 0 : 1;
  } finally {
    for (const path of [folder, code]) await Deno.remove(path, { recursive: true });
  }
}

if (import.meta.main) Deno.exitCode = await run();

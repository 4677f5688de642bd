/**
 * `deno task test`: runs all tests. Several files share one module, and thus one loaded and compiled
 * PML: Deno loads everything again for each file that it is given, which takes 0.3 to 0.6 s of
 * processor time for most files.
 *
 *     deno task test [--jobs N] [PART OF A PATH]...
 *
 * @module
 */

import { join, relative } from "node:path";
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

async function run(): Promise<number> {
  const { values: { jobs }, positionals } = parseArgs({
    args: Deno.args,
    options: { jobs: { type: "string", default: `${navigator.hardwareConcurrency + 1}` } },
    allowPositionals: true,
  });
  const chosen = (await allTests()).filter((file) =>
    positionals.length === 0 || positionals.some((part) => file.includes(part))
  );
  const folder = await Deno.makeTempDir({ prefix: "pml-tests-" });
  try {
    const modules = await Promise.all(
      groupsOf(chosen).map(async (files, at) => {
        // Deno runs modules in the order of their names. PML runs inside of a `_test.ts`.
        const path = join(folder, `${`${at}`.padStart(3, "0")}_test.ts`);
        await Deno.writeTextFile(path, moduleOf(files));
        return relative(ROOT, path);
      }),
    );
    const { code } = await new Deno.Command(Deno.execPath(), {
      args: ["test", "-A", "--no-check", "--parallel", ...modules],
      cwd: ROOT,
      env: { DENO_JOBS: jobs },
    }).spawn().status;
    return code;
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

if (import.meta.main) Deno.exitCode = await run();

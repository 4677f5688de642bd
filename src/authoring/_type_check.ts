/**
 * Checks the types of a module with `deno check` and the types of `host`, without network and
 * without running anything.
 *
 * @module
 */

import { join } from "node:path";
import types from "../../config/module-types.d.ts" with { type: "text" };
import { visible } from "../core/json.ts";
import { DENO_QUIET } from "../sandbox/deno_flags.ts";
import { runProgram } from "../sandbox/process.ts";

/** A problem that the compiler found. */
export interface CompilerProblem {
  readonly message: string;
  readonly line?: number;
  readonly column?: number;
}

/** The time limit of the check, in milliseconds, and the maximum size of its output, in bytes. */
const TYPES_MS = 60_000;
const OUTPUT_MAX = 1_000_000;
const OURS = /^(?:jsr:\/?)?@casys\/pml(?:@[^/]*)?$/;

/**
 * Returns the problems that the compiler finds in a file. `path` is absolute; `specifiers` are the
 * specifiers of its type imports.
 */
export async function typeProblems(
  path: string,
  { home, specifiers, signal }: {
    readonly home: string;
    readonly specifiers: readonly string[];
    readonly signal: AbortSignal;
  },
): Promise<readonly CompilerProblem[]> {
  await Deno.mkdir(home, { recursive: true, mode: 0o700 });
  const folder = await Deno.makeTempDir({ dir: home, prefix: "check-" });
  try {
    const ours = specifiers.filter((specifier) => OURS.test(specifier));
    const imports = Object.fromEntries(ours.map((name) => [name, "./pml.d.ts"]));
    await Deno.writeTextFile(join(folder, "pml.d.ts"), types);
    await Deno.writeTextFile(join(folder, "imports.json"), JSON.stringify({ imports }));
    const { code, stdout, stderr } = await runProgram({
      file: Deno.execPath(),
      args: [
        ...["check", "--quiet", "--no-remote", "--no-npm", "--no-config", "--no-lock"],
        ...["--import-map", join(folder, "imports.json"), path],
      ],
      cwd: folder,
      env: {
        DENO_DIR: join(folder, "deno"),
        DENO_NO_PACKAGE_JSON: "1",
        ...DENO_QUIET,
      },
    }, {
      signal,
      ms: TYPES_MS,
      maxBytes: OUTPUT_MAX,
    });
    return code === 0 ? [] : problemsOf(stdout + stderr);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Splits the output of Deno into problems, with their messages and positions. */
function problemsOf(output: string): readonly CompilerProblem[] {
  const problems = output.split(/^(?=TS\d+ \[ERROR\]: |error: )/m).flatMap((part) => {
    const [, message] = /^(?:TS\d+ \[ERROR\]|error): (.+)/.exec(part) ?? [];
    const [line = 0, column = 0] = /^ {4}at .+:(\d+):(\d+)$/m.exec(part)?.slice(1).map(Number) ??
      [];
    if (message === undefined || message === "Type checking failed.") return [];
    return [{ message: visible(message, 300), ...(line > 0 ? { line, column } : {}) }];
  });
  return problems.length > 0 ? problems : [{ message: visible(output.trim() || "it failed", 300) }];
}

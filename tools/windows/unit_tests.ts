/**
 * Runs unit tests with Deno for Windows: files about rules of Windows, and about paths, locks,
 * processes and pipes. Add more files that pass on Windows.
 *
 * @module
 */

import type { Part } from "./part.ts";

const FILES = [
  "src/cli/_shell_word_test.ts",
  "src/policy/access_list_test.ts",
  "src/config/client_servers_test.ts",
  "src/core/batch_files_test.ts",
  "src/core/glob_test.ts",
  "src/core/paths_test.ts",
  "src/io/folder_lock_test.ts",
  "src/io/lines_test.ts",
  "src/io/private_files_test.ts",
  "src/io/waiting_test.ts",
  "src/sandbox/_pipe_threads_test.ts",
  "src/sandbox/_windows_test.ts",
  "src/sandbox/search_path_test.ts",
  "src/protocol/message_test.ts",
  "src/transport/attach/window_pipe_test.ts",
];

/** Runs the files. */
export const UNIT_TESTS: Part = {
  name: "unit tests",
  run: async (wine, checks) => {
    const paths = FILES.map((file) => `Z:\\pml\\${file.replaceAll("/", "\\")}`);
    const options = ["-A", "--no-check", "--config", "Z:\\pml\\deno.json"];
    const test = wine.command("deno.exe", "test", ...options, ...paths);
    const { code, stdout, stderr } = await wine.run(test, { seconds: 180 });
    const [, passed] = /\| (\d+) passed/.exec(stdout) ?? [];
    checks.pass(Number(passed ?? 0));
    for (const [, title = ""] of stdout.matchAll(/^(.*) \.\.\. FAILED/gm)) {
      checks.fail(title, "failed");
    }
    if (passed === undefined) checks.fail("deno test", `code ${code}: ${stderr.slice(-400)}`);
  },
};

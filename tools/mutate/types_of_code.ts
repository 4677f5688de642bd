/**
 * What the check of code must not do, and what servers must not do to declarations.
 *
 * @module
 */

import type { Mutant } from "./mutant.ts";

/** The guards of the type checker. */
export const TYPES: readonly Mutant[] = [
  {
    name: "types-addresses",
    guard: "The compiler finds no file and no host that code names",
    file: "_language_server.ts",
    find: `"file:///": nothing, "http://": nothing, "https://": nothing`,
    put: "",
    test: "src/workflow/type_check_test.ts",
    filter: "The language server reads no file and reaches no host that code names",
  },
  {
    name: "types-words",
    guard: "The compiler sees no word that could name a module",
    file: "_checked_text.ts",
    find: "(word) => `_${word.slice(1)}`",
    put: "(word) => word",
    test: "src/workflow/type_check_test.ts",
    filter: "The compiler sees no word of code that could name a module",
  },
  {
    name: "types-deadline",
    guard: "Types that keep the compiler busy end its process",
    file: "type_check.ts",
    find: "using _ = after(checkMs,",
    put: "using _ = after(checkMs * 1_000,",
    test: "src/workflow/type_check_test.ts",
    filter: "A check that takes too long ends its process, and the next check has a new one",
  },
  {
    name: "types-comment",
    guard: "No description of a server ends its comment",
    file: "_schema_type.ts",
    find: '.replaceAll("*/", "*\\\\/")',
    put: "",
    test: "src/workflow/declarations_test.ts",
    filter: "Names and texts of servers stay in their quotes and comments",
  },
  {
    name: "types-denied",
    guard: "Declarations have no tool that a rule denies",
    file: "code_types.ts",
    find: '.filter(({ id }) => app.policy.now.judge(id).kind !== "deny")',
    put: "",
    test: "tests/cli_types_test.ts",
    filter: "pml types writes what a person's program is checked with, and runs with",
  },
  {
    name: "types-errors",
    guard: "Of many errors of the compiler only some are read",
    file: "_checked_text.ts",
    find: "inCode.values().take(MOST_READ)",
    put: "inCode.values()",
    test: "src/workflow/type_check_test.ts",
    filter: "Of thousands of errors only some are read",
  },
];

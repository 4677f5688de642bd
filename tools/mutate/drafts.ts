/**
 * What holds of a module that its author is writing, and that nobody approved.
 *
 * @module
 */

import type { Mutant } from "./mutant.ts";

const DEV = {
  test: "tests/dev_test.ts",
  filter: "A module that pml dev follows reaches nothing, whatever it asks for, and rules hold",
};

/** The guards of drafts. */
export const DRAFTS: readonly Mutant[] = [
  {
    name: "draft_reach",
    guard: "A module that is written, and that no configuration names, reaches nothing",
    file: "modules.ts",
    find: 'if (source.kind === "file" && source.draft !== undefined) return NO_ACCESS;',
    put: "",
    ...DEV,
  },
  {
    name: "draft_rules",
    guard: "A rule of the person that asks counts for it, too",
    file: "gate.ts",
    find: 'const isOpen = verdict.kind === "ask" && verdict.source === "defaults";',
    put: 'const isOpen = verdict.kind === "ask";',
    ...DEV,
  },
  {
    name: "draft_name",
    guard: "It does not take the place of another server",
    file: "_dev_module.ts",
    find: 'while (app.directory.at(server).kind !== "unknown") server += "-dev";',
    put: "",
    ...DEV,
  },
  {
    name: "draft_bytes",
    guard: "What runs of it is what was checked, also if its file is another one by then",
    file: "loader.ts",
    find: "const identified = draft ?? ",
    put: "const identified = ",
    test: "src/modules/loader_test.ts",
    filter: "load() gives the bytes of a draft, whatever its file holds, and keeps nothing of them",
  },
];

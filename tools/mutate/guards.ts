/**
 * All guards that a mutant takes away.
 *
 * @module
 */

import { GATES } from "./gates.ts";
import { HASHES } from "./hashes.ts";
import { NAMES } from "./names.ts";
import type { Chapter } from "./page.ts";
import { PATHS } from "./paths.ts";
import { REWRITE } from "./rewrite.ts";

/** The guards, in the order of the page. */
export const CHAPTERS: readonly Chapter[] = [
  { title: "Gates", mutants: GATES },
  { title: "Between the rooms", mutants: REWRITE },
  { title: "Names, and what is known of them", mutants: NAMES },
  { title: "Hashes", mutants: HASHES },
  { title: "Paths", mutants: PATHS },
];

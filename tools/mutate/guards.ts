/**
 * All guards that a mutant takes away.
 *
 * @module
 */

import { CAPABILITIES } from "./capabilities.ts";
import { CLIENTS } from "./clients.ts";
import { FILES } from "./files.ts";
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
  { title: "The words of persons and clients", mutants: CLIENTS },
  { title: "Names, and what is known of them", mutants: NAMES },
  { title: "Hashes", mutants: HASHES },
  { title: "Paths", mutants: PATHS },
  { title: "Files of PML's own", mutants: FILES },
  { title: "Capabilities", mutants: CAPABILITIES },
];

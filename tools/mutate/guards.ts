/**
 * All guards that a mutant takes away.
 *
 * @module
 */

import { CAPABILITIES } from "./capabilities.ts";
import { CLIENTS } from "./clients.ts";
import { CODE } from "./code.ts";
import { FILES } from "./files.ts";
import { GATES } from "./gates.ts";
import { HASHES } from "./hashes.ts";
import { LEARNING } from "./learning.ts";
import { NAMES } from "./names.ts";
import { PLAN_GUARDS } from "./plans.ts";
import type { Chapter } from "./page.ts";
import { PATHS } from "./paths.ts";
import { REVISIONS } from "./revisions.ts";
import { REWRITE } from "./rewrite.ts";
import { SAMPLING } from "./sampling.ts";
import { TYPES } from "./types_of_code.ts";

/** The guards, in the order of the page. */
export const CHAPTERS: readonly Chapter[] = [
  { title: "Gates", mutants: GATES },
  { title: "Plans", mutants: PLAN_GUARDS },
  { title: "Between the rooms", mutants: REWRITE },
  { title: "The words of persons and clients", mutants: CLIENTS },
  { title: "Names, and what is known of them", mutants: NAMES },
  { title: "Hashes", mutants: HASHES },
  { title: "Paths", mutants: PATHS },
  { title: "Files of PML's own", mutants: FILES },
  { title: "Code that calls tools", mutants: CODE },
  { title: "Memory of use, and plans of intents", mutants: LEARNING },
  { title: "Sampling", mutants: SAMPLING },
  { title: "Types of code", mutants: TYPES },
  { title: "Capabilities", mutants: CAPABILITIES },
  { title: "Revisions of MCP", mutants: REVISIONS },
];

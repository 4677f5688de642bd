/**
 * All guards that a mutant takes away.
 *
 * @module
 */

import { CAPABILITIES } from "./capabilities.ts";
import { CLIENTS } from "./clients.ts";
import { CODE } from "./code.ts";
import { DRAFTS } from "./drafts.ts";
import { TRUSTING } from "./trusting.ts";
import { DIRECT } from "./direct.ts";
import { FILES } from "./files.ts";
import { GATES } from "./gates.ts";
import { HASHES } from "./hashes.ts";
import { HUB } from "./hub.ts";
import { LOGINS } from "./logins.ts";
import { LATE } from "./late.ts";
import { LEARNING } from "./learning.ts";
import { NAMES } from "./names.ts";
import { NETWORK } from "./network.ts";
import { PLAN_GUARDS } from "./plans.ts";
import type { Chapter } from "./page.ts";
import { PATHS } from "./paths.ts";
import { QUICK } from "./quick.ts";
import { REVISIONS } from "./revisions.ts";
import { REPLICAS } from "./replicas.ts";
import { WINDOWS } from "./windows.ts";
import { REWRITE } from "./rewrite.ts";
import { SAMPLING } from "./sampling.ts";
import { DOOR_CLIENTS } from "./door.ts";
import { COMPANY_POLICY } from "./company.ts";
import { SERVING } from "./serving.ts";
import { STREAMS } from "./streams.ts";
import { SIGN_IN_ATTACKS } from "./sign_in_attacks.ts";
import { SIGNING_IN } from "./signing_in.ts";
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
  { title: "Signing in: commands, and questions of calls", mutants: LOGINS },
  { title: "Code that calls tools", mutants: CODE },
  { title: "Memory of use, and plans of intents", mutants: LEARNING },
  { title: "Sampling", mutants: SAMPLING },
  { title: "Streams of servers", mutants: STREAMS },
  { title: "Types of code", mutants: TYPES },
  { title: "Capabilities", mutants: CAPABILITIES },
  { title: "The network", mutants: NETWORK },
  { title: "Sign-ins", mutants: SIGNING_IN },
  { title: "The door over HTTP", mutants: SERVING },
  { title: "Several processes", mutants: REPLICAS },
  { title: "Windows", mutants: WINDOWS },
  { title: "Clients of the door over HTTP", mutants: DOOR_CLIENTS },
  { title: "A company's policy", mutants: COMPANY_POLICY },
  { title: "Signing in: attacks", mutants: SIGN_IN_ATTACKS },
  { title: "Revisions of MCP", mutants: REVISIONS },
  { title: "Requests without the SDK", mutants: DIRECT },
  { title: "Calls that run at once", mutants: QUICK },
  { title: "What changes while something waits", mutants: LATE },
  { title: "Modules that are written", mutants: DRAFTS },
  { title: "Trust at a terminal", mutants: TRUSTING },
  { title: "The hub", mutants: HUB },
];

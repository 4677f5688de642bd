/**
 * The result of one check of a module.
 *
 * @module
 */

import type { TextPlace } from "../core/errors.ts";

/** The result of one check. */
export interface Finding extends TextPlace {
  readonly name: string;
  readonly state: "ok" | "failed" | "warning";
  readonly message: string;
  readonly hint?: string;
}

/** Optional parts of a finding. */
export interface FindingDetails extends TextPlace {
  readonly hint?: string;
}

/** Records a finding. */
export type ReportFinding = (
  state: Finding["state"],
  message: string,
  details?: FindingDetails,
) => void;

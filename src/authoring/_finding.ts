/**
 * The result of one check of a module.
 *
 * @module
 */

/** One finding: what was checked, and the result. */
export interface Finding {
  readonly name: string;
  readonly state: "ok" | "failed" | "warning";
  readonly message: string;
  readonly hint?: string;
  /** The line of the file, from 1. */
  readonly line?: number;
  /** The column in that line, from 1. */
  readonly column?: number;
}

/** Optional parts of a finding. */
export interface FindingDetails {
  readonly hint?: string;
  readonly line?: number | undefined;
  readonly column?: number | undefined;
}

/** Records a finding. */
export type Say = (
  state: Finding["state"],
  message: string,
  details?: FindingDetails,
) => void;

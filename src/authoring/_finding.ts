/**
 * What is found when a module is looked over.
 *
 * @module
 */

/** One thing that was looked at, and what was found. */
export interface Finding {
  readonly name: string;
  readonly state: "ok" | "failed" | "warning";
  readonly message: string;
  readonly hint?: string;
  /** The line of the file, from 1. */
  readonly line?: number;
}

/** What a finding carries beside its words. */
export interface FindingDetails {
  readonly hint?: string;
  readonly line?: number | undefined;
}

/** Takes down what is found. */
export type Say = (
  state: Finding["state"],
  message: string,
  details?: FindingDetails,
) => void;

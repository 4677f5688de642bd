/**
 * The types of the parameters of tool functions.
 *
 * @module
 */

/** The arguments of all tools. The schema of each tool lists its arguments. */
export interface Args {
  readonly repo?: string;
  readonly paths?: readonly string[];
  readonly path?: string;
  readonly revision?: string;
  readonly from?: string;
  readonly to?: string;
  readonly staged?: boolean;
  readonly context?: number;
  readonly offset?: number;
  readonly limit?: number;
  readonly skip?: number;
  readonly follow?: boolean;
  readonly author?: string;
  readonly since?: string;
  readonly until?: string;
  readonly grep?: string;
  readonly start?: number;
  readonly remote?: boolean;
  readonly untracked?: boolean;
  readonly all?: boolean;
  readonly message?: string;
  readonly amend?: boolean;
  readonly allow_empty?: boolean;
  readonly source?: string;
  readonly action?: string;
  readonly stash?: number;
  readonly restore_index?: boolean;
}

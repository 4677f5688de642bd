/**
 * The types of the parameters of tool functions.
 *
 * @module
 */

/** The second argument of every tool. */
export interface Host {
  readonly workspace: string;
  readonly signal?: AbortSignal;
  readonly progress?: (progress: { readonly progress: number; readonly message?: string }) => void;
}

/** The arguments of all tools. The schema of each tool lists its arguments. */
export interface Args {
  readonly path: string;
  readonly paths: readonly string[];
  readonly head?: number;
  readonly tail?: number;
  readonly sortBy?: string;
  readonly pattern: string;
  readonly excludePatterns?: readonly string[];
  readonly content: string;
  readonly edits: readonly Edit[];
  readonly dryRun?: boolean;
  readonly source: string;
  readonly destination: string;
  readonly recursive?: boolean;
}

/** One replacement in a text. */
export interface Edit {
  readonly oldText: string;
  readonly newText: string;
}

/**
 * What a tool function is given.
 *
 * @module
 */

/** What the sandbox hands to every tool. */
export interface Host {
  readonly workspace: string;
  readonly signal?: AbortSignal;
  readonly progress?: (progress: { readonly progress: number; readonly message?: string }) => void;
}

/** The arguments of all tools together: the schema of each says which of them it gets. */
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

export interface Edit {
  readonly oldText: string;
  readonly newText: string;
}

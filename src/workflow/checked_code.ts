/**
 * Code whose types are checked, and the problems.
 *
 * @module
 */

/** Code to check, and the client that it came from. */
export interface CodeToCheck {
  readonly code: string;
  /** The name of the caller. */
  readonly actor: string;
  readonly signal: AbortSignal;
}

/** Checks the types of code. */
export interface TypeCheck {
  /** Checks code. The lines of problems are those of the code. */
  check(wanted: CodeToCheck): Promise<TypesChecked>;
}

/** What a check of types says of code. */
export type TypesChecked =
  | { readonly kind: "checked" }
  | { readonly kind: "problems"; readonly problems: readonly TypeProblem[] }
  | { readonly kind: "unchecked"; readonly why: string };

/** One error of types. */
export interface TypeProblem {
  readonly line: number;
  readonly message: string;
  readonly hint?: string;
}

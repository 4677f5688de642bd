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
  /** Checks code. Problems have the line numbers of the code. */
  check(code: CodeToCheck): Promise<TypesChecked>;
}

/** The result of a type check. */
export type TypesChecked =
  | { readonly kind: "checked" }
  | { readonly kind: "problems"; readonly problems: readonly TypeProblem[] }
  | { readonly kind: "unchecked"; readonly why: string };

/** One type error. */
export interface TypeProblem {
  readonly line: number;
  readonly message: string;
  readonly hint?: string;
}

/**
 * The input and the result of a type check.
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
  /** Checks code. Problems contain line numbers of the code, which start at 1. */
  check(code: CodeToCheck): Promise<TypeCheckResult>;
}

/** The result of a type check. */
export type TypeCheckResult =
  | { readonly kind: "checked" }
  | { readonly kind: "problems"; readonly problems: readonly TypeProblem[] }
  | { readonly kind: "unchecked"; readonly why: string };

/** One type error. */
export interface TypeProblem {
  readonly line: number;
  readonly message: string;
  readonly hint?: string;
}

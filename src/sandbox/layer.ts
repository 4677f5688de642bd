/**
 * The layers of the operating system that can confine programs.
 *
 * @module
 */

/** The layer that confines a child. A child whose layer is Landlock does not run without it. */
export type Layer =
  | { readonly kind: "landlock" }
  | { readonly kind: "bwrap"; readonly program: string; readonly version: string }
  | { readonly kind: "none"; readonly why: string };

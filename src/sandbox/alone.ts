/**
 * How Deno runs a program of PML's own, and nothing from elsewhere.
 *
 * @module
 */

/** Runs code with Deno that fetches nothing, reads no settings and asks nobody. */
export const DENO_ALONE: readonly string[] = [
  ...["run", "--quiet", "--no-prompt", "--no-config", "--no-lock", "--no-remote", "--no-npm"],
  "--cached-only",
];

/** What Deno finds in its environment: no word of another version, and no colours. */
export const DENO_QUIET = { DENO_NO_UPDATE_CHECK: "1", NO_COLOR: "1" };

/** Gives the URL of a program, so that it is no file that somebody could change. */
export function programUrl(code: string): string {
  return `data:application/javascript;base64,${new TextEncoder().encode(code).toBase64()}`;
}

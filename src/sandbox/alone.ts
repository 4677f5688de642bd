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

/** Gives the URL of a program, so that it is no file that somebody could change. */
export function programUrl(code: string): string {
  return `data:application/javascript;base64,${new TextEncoder().encode(code).toBase64()}`;
}

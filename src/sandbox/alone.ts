/**
 * How Deno runs a program of PML: without files or settings from anywhere else.
 *
 * @module
 */

/**
 * The arguments that run code with Deno so that it downloads nothing, reads no settings and asks
 * nobody.
 */
export const DENO_ALONE: readonly string[] = [
  ...["run", "--quiet", "--no-prompt", "--no-config", "--no-lock", "--no-remote", "--no-npm"],
  "--cached-only",
];

/** The environment of Deno: no message about new versions, and no colours. */
export const DENO_QUIET = { DENO_NO_UPDATE_CHECK: "1", NO_COLOR: "1" };

/**
 * Returns a program as a `data:` URL, so that there is no file that somebody could change. Scripts
 * that run before its code have variables of their own.
 */
export function programUrl(code: string, before: readonly string[] = []): string {
  const all = before.map((script) => `(()=>{${script}})();`).join("") + code;
  return `data:application/javascript;base64,${new TextEncoder().encode(all).toBase64()}`;
}

/**
 * The options with which Deno runs a program of PML, without other files or settings.
 *
 * @module
 */

/**
 * The arguments of Deno for code that downloads nothing, reads no settings and never prompts.
 */
export const DENO_ALONE: readonly string[] = [
  ...["run", "--quiet", "--no-prompt", "--no-config", "--no-lock", "--no-remote", "--no-npm"],
  "--cached-only",
];

/** The environment of Deno: no message about new versions, and no colours. */
export const DENO_QUIET = { DENO_NO_UPDATE_CHECK: "1", NO_COLOR: "1" };

/** Returns a program as a `data:` URL, so that no file on disk can be tampered with. */
export function programUrl(code: string): string {
  return `data:text/javascript,${encodeURIComponent(code)}`;
}

/**
 * Returns a program whose code is sent on its standard input, before anything else: the URL that
 * Deno runs, and the bytes to send. Deno spends half of its start on a long URL and on parsing a
 * module; V8 alone takes a tenth of that.
 */
export function sentProgram(code: string): [string, Uint8Array] {
  const sent = new TextEncoder().encode(`"use strict";${code}`);
  const url = programUrl(
    `for(var a=new Uint8Array(${sent.length}),n=0;n<a.length;)` +
      "n+=Deno.stdin.readSync(a.subarray(n))??Deno.exit(70);(0,eval)(new TextDecoder().decode(a))",
  );
  return [url, sent];
}

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

/** Returns a program as a `data:` URL, so that there is no file that somebody could change. */
export function programUrl(code: string): string {
  return `data:text/javascript,${encodeURIComponent(code)}`;
}

/**
 * Returns a program whose code is sent on its standard input, before anything else: the address
 * that Deno runs, and what is sent. Deno takes half of its own start to read a long address and to
 * parse a module; V8 alone takes a tenth of that.
 */
export function sentProgram(code: string): [string, Uint8Array] {
  const sent = new TextEncoder().encode(`"use strict";${code}`);
  const url = programUrl(
    `for(var a=new Uint8Array(${sent.length}),n=0;n<a.length;)` +
      "n+=Deno.stdin.readSync(a.subarray(n))??Deno.exit(70);(0,eval)(new TextDecoder().decode(a))",
  );
  return [url, sent];
}

/**
 * Opens a page in the user's browser.
 *
 * @module
 */

import { dirname } from "node:path";
import type { LoadedConfig } from "../config/config.ts";
import { startProcess } from "../sandbox/process.ts";
import { findOutside, outsideEnvironment } from "../oauth/keyring.ts";

/** The program that opens an address, and the arguments before it. */
const OPENERS: Partial<Record<typeof Deno.build.os, readonly [string, ...string[]]>> = {
  darwin: ["open"],
  windows: ["rundll32.exe", "url.dll,FileProtocolHandler"],
};

/**
 * Opens a page with a program from outside the workspace, without a shell. Returns whether there is
 * such a program. PML does not learn whether the program shows the page.
 */
export function openInBrowser(address: string, loaded: LoadedConfig): boolean {
  const [name, ...args] = OPENERS[Deno.build.os] ?? ["xdg-open"];
  const file = findOutside(loaded, name);
  if (file === undefined) return false;
  // The opener is a script that finds browsers on this PATH.
  const env = outsideEnvironment(loaded);
  const program = { file, args: [...args, address], cwd: dirname(file), env };
  const opener = startProcess(program, { hasOutputs: false, outlives: true });
  // The program may be the browser itself, which keeps running.
  opener.unref();
  opener.stdin.close().catch(() => {}); // it has ended already
  return true;
}

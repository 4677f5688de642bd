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
 * Opens a page, without a shell and with a program from outside the workspace, if there is one. It is
 * unknown whether the program shows the page.
 */
export function openInBrowser(address: string, loaded: LoadedConfig): void {
  const [name, ...args] = OPENERS[Deno.build.os] ?? ["xdg-open"];
  const file = findOutside(loaded, name);
  if (file === undefined) return;
  // The opener is a script that finds browsers on this PATH.
  const env = outsideEnvironment(loaded);
  const program = { file, args: [...args, address], cwd: dirname(file), env };
  const opener = startProcess(program, { heard: false, outlives: true });
  // It may be the browser itself, which goes on.
  opener.unref();
  opener.stdin.close().catch(() => {}); // it has ended already
}

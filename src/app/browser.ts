/**
 * Opens a page in the person's browser.
 *
 * @module
 */

import { delimiter, dirname } from "node:path";
import { browserEnvironment } from "../config/child_environment.ts";
import type { LoadedConfig } from "../config/config.ts";
import { startProcess } from "../sandbox/process.ts";
import { findProgram, searchPath } from "../sandbox/search_path.ts";

/** The program that opens an address, and the arguments before it. */
const OPENERS: Partial<Record<typeof Deno.build.os, readonly [string, ...string[]]>> = {
  darwin: ["open"],
  windows: ["rundll32.exe", "url.dll,FileProtocolHandler"],
};

/**
 * Opens a page, without a shell and with a program from outside the workspace, if there is one.
 * Nobody knows whether it shows the page.
 */
export function openInBrowser(
  address: string,
  { environment, workspace: { root: workspace } }: Pick<LoadedConfig, "environment" | "workspace">,
): void {
  const [name, ...args] = OPENERS[Deno.build.os] ?? ["xdg-open"];
  const path = searchPath(environment.get("PATH"), workspace);
  const file = findProgram(name, { path, workspace });
  if (file === undefined) return;
  // It is a script that finds browsers by this path.
  const env = { ...browserEnvironment(environment), PATH: path.join(delimiter) };
  const program = { file, args: [...args, address], cwd: dirname(file), env };
  const opener = startProcess(program, { heard: false });
  // It may be the browser itself, which goes on.
  opener.unref();
  opener.stdin.close().catch(() => {}); // it has ended already
}

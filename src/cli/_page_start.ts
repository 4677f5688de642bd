/**
 * Starts `pml page` for `pml serve --open`, as a separate process on the same terminal.
 *
 * @module
 */

import { packageFlags } from "../sandbox/own_code.ts";
import { startOnTerminal } from "../sandbox/process.ts";
import { commandProcess } from "./command_process.ts";

/** Starts the page, which goes on when this process ends. */
export function startPage(isJson: boolean): void {
  const main = Deno.mainModule;
  startOnTerminal({
    file: Deno.execPath(),
    args: ["run", "-A", ...packageFlags(main), main, "page", ...isJson ? ["--json"] : []],
    cwd: commandProcess().cwd,
  });
}

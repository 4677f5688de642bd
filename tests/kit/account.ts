/**
 * Runs a program where the account has a home folder of the test's, as the system tells it.
 *
 * @module
 */

import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Command } from "./pml_command.ts";
import { pmlCommand } from "./pml_command.ts";
import type { Workspace } from "./workspace.ts";

const BIND = 'mount --bind "$1" /etc/passwd && shift && exec "$@"';

/** Whether this system lets a test have an account of its own. */
export const HAS_ACCOUNTS: boolean = wayIn() !== undefined;

/** Gives the command of PML for an account whose home is the folder around the PML home. */
export function pmlOfAccount(ws: Workspace, home: string = dirname(ws.home)): Command {
  const file = join(ws.root, "passwd");
  writeFileSync(file, `root:x:0:0:root:${home}:/bin/sh\n`);
  const [program = "", ...args] = wayIn() ?? [];
  return [program, ...args, "sh", "-c", BIND, "sh", file, ...pmlCommand()];
}

function wayIn(): readonly string[] | undefined {
  return [["unshare", "-m"], ["unshare", "-rm"]].find(([program = "", ...args]) => {
    try {
      const check = ["sh", "-c", "mount --bind /etc/passwd /etc/passwd"];
      return new Deno.Command(program, { args: [...args, ...check], stderr: "null" })
        .outputSync().success;
    } catch {
      return false; // there is no such program
    }
  });
}

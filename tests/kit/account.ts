/**
 * Runs a program for an account of the system whose home folder is one of the test.
 *
 * @module
 */

import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Command } from "./pml_command.ts";
import { pmlCommand } from "./pml_command.ts";
import type { Workspace } from "./workspace.ts";

const BIND = 'mount --bind "$1" /etc/passwd && shift && exec "$@"';

/** Whether a test can use a separate account on this system. */
export const HAS_ACCOUNTS: boolean = wayIn() !== undefined;

/** Returns the command of PML for an account whose home is the folder around the PML home. */
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
      return false; // the program does not exist
    }
  });
}

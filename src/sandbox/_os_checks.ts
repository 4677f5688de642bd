/**
 * Checks which protection this system adds to the sandbox, for `pml doctor`. A child must have run
 * before.
 *
 * @module
 */

import { type Check, check } from "../core/check.ts";
import { PmlError } from "../core/errors.ts";
import { tried } from "./_os_layer.ts";
import { endsWithPml } from "./process.ts";

/**
 * Returns three checks: the layer that confined the child (`landlock 7`) with its effect, whether
 * programs are limited, and whether they end with PML. `confined` is the report of the child.
 */
export async function osChecks(confined: string): Promise<readonly Check[]> {
  return [layer(confined), processes(confined), await reaper()];
}

function layer(confined: string): Check {
  const swap = "a link swapped between check and open is";
  if (/^(landlock|bubblewrap) \d/.test(confined)) {
    return { name: "layer", ok: true, said: `${confined}: ${swap} stopped by the system` };
  }
  const said = `${confined}: ${swap} not stopped by the system, only seen where PML looks again`;
  const hint = "Linux 5.19 or newer with Landlock closes it, or bubblewrap on PATH";
  return { name: "layer", ok: true, said, hint };
}

function processes(confined: string): Check {
  const why = Deno.build.os !== "linux" || /libc/.test(confined)
    ? "not on this system"
    : Deno.uid() === 0
    ? "PML runs as root, which no limit binds"
    : undefined;
  const said = why === undefined ? "bounded by number" : `not bounded by number: ${why}`;
  return { name: "programs of modules", ok: true, said };
}

/** Starts a process that loses its parent, and prints `kept` if the keeper adopted it. */
const FLEE = `echo "$( (sleep 0.2
  read -r pid name state up rest </proc/self/stat
  [ "$up" = "$PPID" ] && echo kept) & )"`;

async function reaper(): Promise<Check> {
  const name = "reaper";
  if (endsWithPml()) {
    const said = "programs end with PML, also when it is killed: job objects of Windows";
    return { name, ok: true, said };
  }
  if (Deno.build.os === "windows") {
    const said = "programs may outlive a PML that is killed: PML may not call the system";
    return { name, ok: false, said, hint: "Start PML with --allow-ffi, as `pml` does" };
  }
  const { ok, text } = await tried("/bin/sh", ["-c", FLEE]);
  const said = `what PML started ends with it, also when it is killed${
    text.startsWith("kept")
      ? ", wherever that flees"
      : "; not what leaves its group with another environment"
  }`;
  return await check(name, said, () => {
    if (ok) return;
    throw new PmlError("SANDBOX_DENIED", `Cannot run /bin/sh: ${text.trim().slice(0, 200)}`, {
      hint: "Without it, what PML started may outlive a PML that is killed",
    });
  });
}

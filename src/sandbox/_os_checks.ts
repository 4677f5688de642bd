/**
 * Checks which protection this system adds to the sandbox, for `pml doctor`. A child must have run
 * before.
 *
 * @module
 */

import { type CheckReport, runCheck } from "../core/check.ts";
import { PmlError } from "../core/errors.ts";
import { runToEnd } from "./_os_layer.ts";
import { systemEndsPrograms } from "./process.ts";

/**
 * Returns three checks: the layer that confined the child (`landlock 7`) with its effect, whether
 * programs are limited, and whether they end with PML. `confined` is the report of the child.
 */
export async function osChecks(confined: string): Promise<readonly CheckReport[]> {
  return [checkLayer(confined), checkProcesses(confined), await checkReaper()];
}

function checkLayer(confined: string): CheckReport {
  const swap = "links that are swapped in between a check and an open";
  if (/^(landlock|bubblewrap) \d/.test(confined)) {
    return { name: "layer", ok: true, message: `${confined}: the system blocks ${swap}` };
  }
  const text = `${confined}: the system does not block ${swap}; PML detects only some of them`;
  const hint = "Use Linux 5.19 or newer with Landlock, or install bubblewrap";
  return { name: "layer", ok: true, message: text, hint };
}

function checkProcesses(confined: string): CheckReport {
  const why = Deno.build.os !== "linux" || /libc/.test(confined)
    ? "not on this system"
    : Deno.uid() === 0
    ? "PML runs as root, to which no limit applies"
    : undefined;
  const text = why === undefined
    ? "their number is limited"
    : `their number is not limited: ${why}`;
  return { name: "programs of modules", ok: true, message: text };
}

/** A script that starts a process, ends its parent, and prints `kept` if the keeper adopted it. */
const FLEE = `echo "$( (sleep 0.2
  read -r pid name state up rest </proc/self/stat
  [ "$up" = "$PPID" ] && echo kept) & )"`;

async function checkReaper(): Promise<CheckReport> {
  const name = "reaper";
  if (systemEndsPrograms()) {
    const text = "all child processes end with PML, also when it is killed: job objects of Windows";
    return { name, ok: true, message: text };
  }
  if (Deno.build.os === "windows") {
    const text = "programs may outlive a killed PML: PML may not call the system";
    return { name, ok: false, message: text, hint: "Start PML with --allow-ffi, as `pml` does" };
  }
  const { ok, text } = await runToEnd("/bin/sh", ["-c", FLEE]);
  const message = `all child processes end with PML, also when it is killed, ${
    text.startsWith("kept")
      ? "including detached ones"
      : "except detached ones that change their environment"
  }`;
  return await runCheck(name, message, () => {
    if (ok) return;
    throw new PmlError("SANDBOX_DENIED", `Cannot run /bin/sh: ${text.trim().slice(0, 200)}`, {
      hint: "Make /bin/sh runnable: without it, programs may outlive a killed PML",
    });
  });
}

/**
 * Creates the keeper of a program: a shell that is the parent of the program. When a descendant of
 * the keeper ends, the children of this descendant become children of the keeper. The keeper kills
 * all its children when the program has ended, when the keeper gets SIGTERM, and when PML has
 * ended.
 *
 * @module
 */

import { DENO_ALONE, programUrl } from "./deno_flags.ts";
import type { SupervisedProgram } from "./boot/keeper.ts";
import type { Program } from "./program.ts";
import confinedCode from "./boot/confined.min.js" with { type: "text" };
import keeperCode from "./boot/keeper.min.js" with { type: "text" };
import kernelCode from "./boot/kernel.min.js" with { type: "text" };

const SHELL = "/bin/sh";
/** The number of bytes that every new pipe on Linux can hold. */
export const PIPE_BYTES = 4_096;
/**
 * Runs its arguments as a program. The program gets the keeper's standard input and outputs, and
 * the keeper closes its copies. The children of a killed process become children of the keeper, so
 * each pass of `sweep` reaches one generation further. The subshell makes the shell wait, which
 * also collects processes that have ended. The number of passes is limited, because some processes
 * cannot be killed, such as processes of `sudo`. The keeper ends with the program's exit code or
 * signal.
 */
const SCRIPT = `sweep() {
  n=0
  while read -r below <"/proc/$$/task/$$/children"; [ "$below" ] && [ "$n" -lt 200 ]; do
    n=$((n + 1))
    kill -s KILL $below
    (:)
    [ "$n" -lt 100 ] || sleep 0.05
  done
}
trap "sweep; kill -s KILL $$" TERM
exec 3<&0
"$@" <&3 3<&- &
exec 3<&- </dev/null >/dev/null 2>&1
trap "" HUP INT QUIT PIPE
wait "$!"
code=$?
ulimit -c 0
sweep
trap - HUP INT QUIT PIPE TERM
[ "$code" -le 128 ] || kill -$((code - 128)) $$
exit "$code"`;

/** Returns whether this system can run keepers. */
export function canRunKeepers(): boolean {
  try {
    Deno.statSync(SHELL);
    Deno.statSync(`/proc/self/task/${Deno.pid}/children`);
    return Deno.build.env === "gnu";
  } catch {
    return false;
  }
}

/**
 * Returns the keeper to start in place of a program. The keeper reads the description of the
 * program on standard input. If the program is confined, its second step contains the code that
 * confines it.
 */
export function keeperProgram(isConfined: boolean): Program {
  const flags = [...DENO_ALONE, "--no-code-cache", "--allow-ffi"];
  const args = [...flags, programUrl(keeperCode)];
  const file = Deno.execPath();
  const before = isConfined ? kernelCode + confinedCode : "";
  const step = [file, ...flags, programUrl(before + keeperCode)];
  const keeper = [`${Deno.pid}`, SHELL, "-c", SCRIPT, "pml-keeper", ...step];
  // The keeper writes no cache and reads no settings.
  const env = { DENO_DIR: "/dev/null", DENO_NO_UPDATE_CHECK: "1", PATH: "/usr/bin:/bin" };
  return { file, args: [...args, ...keeper], cwd: "/", env };
}

/** Returns the description of a program for its keeper: a line with its length, then JSON. */
export function descriptionOf(program: SupervisedProgram): Uint8Array {
  const encoder = new TextEncoder();
  const text = encoder.encode(JSON.stringify(program));
  return new Uint8Array([...encoder.encode(`${text.length}\n`), ...text]);
}

/**
 * Opens the pipe of the standard input of a new process. Returns undefined if the process has ended,
 * or if it has replaced its input, which a keeper does when it waits for its program.
 */
export function openInput(pid: number): Deno.FsFile | undefined {
  try {
    const input = Deno.openSync(`/proc/${pid}/fd/0`, { write: true });
    if (input.statSync().isFifo) return input;
    input.close();
  } catch {
    // The status of the process reports its end.
  }
  return undefined;
}

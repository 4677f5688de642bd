/**
 * The keeper of a program: a shell above it that all processes below fall to when their parents end,
 * and that ends them all when the program has ended, when it is told to, and when PML is gone.
 *
 * @module
 */

import { DENO_ALONE, programUrl } from "./alone.ts";
import type { Program } from "./process.ts";
import keeperCode from "./boot/keeper.min.js" with { type: "text" };

const SHELL = "/bin/sh";
/**
 * Runs its arguments as a program with its own standard input and outputs, which it lets go of. What
 * is killed hands its children on to the keeper, so each pass of a sweep reaches one generation
 * further; the subshell is waited for, and takes in what has ended on the way. The passes are bounded
 * for what cannot be killed, as what runs by `sudo`. At its end it ends as the program did.
 */
const SCRIPT = `sweep() {
  passes=0
  while read -r below <"/proc/$$/task/$$/children"; [ "$below" ] && [ "$passes" -lt 200 ]; do
    passes=$((passes + 1))
    kill -s KILL $below
    (:)
    [ "$passes" -lt 100 ] || sleep 0.05
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

/** Tells whether programs can be kept on this system. */
export function canKeep(): boolean {
  try {
    Deno.statSync(SHELL);
    Deno.statSync(`/proc/self/task/${Deno.pid}/children`);
    return Deno.build.env === "gnu";
  } catch {
    return false;
  }
}

/**
 * Gives what is started in the place of a program, which is told in so many bytes; other code may
 * become the program.
 */
export function keeperOf(bytes: number, code = keeperCode): Program {
  const flags = [...DENO_ALONE, "--no-code-cache", "--allow-ffi"];
  const args = [...flags, programUrl(keeperCode)];
  const file = Deno.execPath();
  const step = [file, ...flags, programUrl(code), `${bytes}`];
  const keeper = [`${Deno.pid}`, SHELL, "-c", SCRIPT, "pml-keeper", ...step];
  // It writes nothing, and reads no settings.
  const env = { DENO_DIR: "/dev/null", DENO_NO_UPDATE_CHECK: "1", PATH: "/usr/bin:/bin" };
  return { file, args: [...args, ...keeper], cwd: "/", env };
}

/**
 * The keeper of a program: a shell above it that all processes below fall to when their parents end,
 * and that ends them all when the program has ended, when it is told to, and when PML is gone.
 *
 * @module
 */

import { type KeptProgram, LENGTH_DIGITS } from "./boot/keeper.ts";
import keeperCode from "./boot/keeper.min.js" with { type: "text" };

const SHELL = "/bin/sh";
/**
 * Runs its arguments as a program with its own standard input and outputs, which it lets go of.
 * What is killed hands its children on to the keeper, so each pass reaches one generation further;
 * a few passes are left for what cannot be killed, as what runs by `sudo`.
 */
const SCRIPT = `sweep() {
  passes=0
  while read -r below <"/proc/$$/task/$$/children"; [ "$below" ] && [ "$passes" -lt 200 ]; do
    passes=$((passes + 1))
    kill -s KILL $below
    (:) # Waiting for this one takes in what has ended, too.
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
if [ "$code" -gt 128 ]; then
  trap - HUP INT QUIT PIPE TERM
  kill -$((code - 128)) $$
fi
exit "$code"`;

/** Tells why no program can be kept here; undefined where they are. */
export function lackOfKeeper(): string | undefined {
  const { os, env } = Deno.build;
  if (os !== "linux" || env !== "gnu") return "not on this system";
  return [SHELL, `/proc/self/task/${Deno.pid}/children`].map(lackOf).find(Boolean);
}

/** Gives the arguments of Deno with which it becomes the keeper. */
export function keeperArgs(): string[] {
  const deno = [
    ...["run", "--quiet", "--no-prompt", "--no-config", "--no-lock", "--no-remote", "--no-npm"],
    ...["--cached-only", "--no-code-cache", "--allow-ffi"],
    `data:application/javascript;base64,${new TextEncoder().encode(keeperCode).toBase64()}`,
  ];
  const program = [Deno.execPath(), ...deno];
  return [...deno, `${Deno.pid}`, SHELL, "-c", SCRIPT, "pml-keeper", ...program];
}

/** The whole environment of a keeper, which writes nothing and reads no settings. */
export const KEEPER_ENV: Readonly<Record<string, string>> = {
  DENO_DIR: "/dev/null",
  DENO_NO_UPDATE_CHECK: "1",
  PATH: "/usr/bin:/bin",
};

/** Gives what a keeper reads of its standard input before the program does. */
export function keptProgram(program: KeptProgram): Uint8Array<ArrayBuffer> {
  const { file, args, cwd, env } = program;
  const json = new TextEncoder().encode(JSON.stringify({ file, args, cwd, env }));
  const length = `${json.length}`.padStart(LENGTH_DIGITS, "0");
  return new Uint8Array([...new TextEncoder().encode(length), ...json]);
}

function lackOf(path: string): string | undefined {
  try {
    Deno.statSync(path);
    return undefined;
  } catch {
    return `there is no ${path}`;
  }
}

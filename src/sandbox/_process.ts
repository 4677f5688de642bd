/**
 * Processes in a group of their own, with nothing of PML's environment, and how they end.
 *
 * @module
 */

/** A process that this side talks to. */
export type Process = Deno.ChildProcess;

/** Starts a program by its absolute path. */
export function startProcess(
  file: string,
  options: {
    readonly args: readonly string[];
    readonly cwd: string;
    readonly env: Readonly<Record<string, string>>;
    /** Whether its outputs are read. */
    readonly heard: boolean;
  },
): Process {
  const { args, cwd, env, heard } = options;
  const out = heard ? "piped" : "null";
  return new Deno.Command(file, {
    args: [...args],
    cwd,
    env,
    clearEnv: true,
    stdin: "piped",
    stdout: out,
    stderr: out,
    detached: true,
  }).spawn();
}

/** Kills a process group. */
export function killGroup(pid: number): void {
  kill(-pid);
}

/** Kills what has a mark in its environment, also what left its group; for systems with /proc. */
export function killMarked(mark: string): void {
  for (const name of processes()) if (environmentOf(name).includes(mark)) kill(Number(name));
}

function processes(): readonly string[] {
  try {
    return [...Deno.readDirSync("/proc")].map(({ name }) => name).filter((name) =>
      /^\d+$/.test(name)
    );
  } catch {
    return []; // another system, or no file can be opened now: the groups are all that is known
  }
}

function environmentOf(pid: string): string {
  try {
    return Deno.readTextFileSync(`/proc/${pid}/environ`);
  } catch {
    return ""; // gone, or another person's
  }
}

function kill(pid: number): void {
  try {
    Deno.kill(pid, "SIGKILL");
  } catch {
    // Gone already, which is what was wanted; or it became another person's, as by sudo.
  }
}

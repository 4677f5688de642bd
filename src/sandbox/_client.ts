/**
 * Finds the process of the client: the one that made this process's standard input.
 *
 * @module
 */

/** Gives `client`, its process id and when it started; undefined where nobody tells, or it is gone. */
export function clientProcess(): string | undefined {
  try {
    const input = inputOf(Deno.pid);
    let pid = Deno.ppid;
    // What only hands its own input on, as npx and sh do, is not it.
    while (pid > 1 && inputOf(pid) === input) pid = Number(statOf(pid)[1]);
    return pid > 1 ? `client ${pid} ${statOf(pid)[19]}` : undefined;
  } catch {
    return undefined; // a system without /proc, or it ended just now
  }
}

function inputOf(pid: number): string {
  try {
    return Deno.readLinkSync(`/proc/${pid}/fd/0`);
  } catch {
    return ""; // another person's, or it has none
  }
}

/** Gives what stands behind the name, which may hold any character: the state, the parent, … */
function statOf(pid: number): readonly string[] {
  const text = Deno.readTextFileSync(`/proc/${pid}/stat`);
  return text.slice(text.lastIndexOf(")") + 2).split(" ");
}

/**
 * Finds the process of the client: the one that made this process's standard input.
 *
 * @module
 */

/**
 * Returns `client`, its process id and its start time. Returns undefined if that is unknown or the
 * client has ended.
 */
export function clientProcess(): string | undefined {
  try {
    const input = inputOf(Deno.pid);
    let pid = Deno.ppid;
    // A process that passes on its own input, such as npx or sh, is not the client.
    while (pid > 1 && inputOf(pid) === input) pid = Number(statOf(pid)[1]);
    return pid > 1 ? `client ${pid} ${statOf(pid)[19]}` : undefined;
  } catch {
    return undefined; // a system without /proc, or the process ended just now
  }
}

function inputOf(pid: number): string {
  try {
    return Deno.readLinkSync(`/proc/${pid}/fd/0`);
  } catch {
    return ""; // a process of another user, or one without standard input
  }
}

/**
 * Returns the fields behind the process name: the state, the parent, and so on. The name itself may
 * contain any character.
 */
function statOf(pid: number): readonly string[] {
  const text = Deno.readTextFileSync(`/proc/${pid}/stat`);
  return text.slice(text.lastIndexOf(")") + 2).split(" ");
}

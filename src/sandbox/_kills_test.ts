/** Returns the ids that get a signal during work. */
export async function killsOf(work: () => Promise<void> | void): Promise<readonly number[]> {
  const { kill } = Deno;
  const kills: number[] = [];
  Deno.kill = (pid, signal) => {
    kills.push(pid);
    kill(pid, signal);
  };
  try {
    await work();
  } finally {
    Deno.kill = kill;
  }
  return kills;
}

/**
 * The command line: what a person types, and the exit code that comes of it.
 *
 * @module
 */

/** Runs the command that the arguments name; 0 is well, 1 failed, 2 wrong usage or configuration. */
export async function main(args: readonly string[]): Promise<number> {
  // Every client start goes this way, so nothing that only people need is loaded on it.
  if (args.length === 1 && args[0] === "stdio") {
    const { stdio } = await import("./_stdio.ts");
    return await stdio();
  }
  const { run } = await import("./_program.ts");
  return await run(args);
}

/**
 * The command line.
 *
 * @module
 */

/**
 * Runs the command that the arguments name. Returns the exit code: 0 for success, 1 for a failure,
 * 2 for wrong usage or a broken configuration.
 */
export async function main(args: readonly string[]): Promise<number> {
  // Each client start comes through here, so code that only people need is not loaded.
  if (args.length === 1 && args[0] === "stdio") {
    const { stdio } = await import("./_stdio.ts");
    return await stdio();
  }
  const { run } = await import("./_program.ts");
  return await run(args);
}

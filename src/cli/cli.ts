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
  try {
    return await run(args);
  } catch (error) {
    const { report } = await import("./_failure.ts").catch(() => {
      throw error; // `_failure.ts` cannot be loaded, either
    });
    return report(error, args);
  }
}

async function run(args: readonly string[]): Promise<number> {
  const line = args.join(" ");
  // Every client starts PML through this function, so it does not load code that only users need.
  if (line === "stdio") {
    const { stdio } = await import("./_stdio.ts");
    return await stdio();
  }
  if (line === "-v" || line === "--version") {
    const { version } = await import("./_version.ts");
    return version();
  }
  if (line === "-h" || line === "--help") {
    const { help } = await import("./_help.ts");
    return await help();
  }
  const program = await import("./_program.ts");
  return await program.runCommand(args);
}

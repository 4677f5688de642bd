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
  const said = args.join(" ");
  // Each client start comes through here, so code that only people need is not loaded.
  if (said === "stdio") {
    const { stdio } = await import("./_stdio.ts");
    return await stdio();
  }
  if (said === "-v" || said === "--version") {
    const { VERSION } = await import("../core/version.ts");
    try {
      Deno.stdout.writeSync(new TextEncoder().encode(VERSION + "\n"));
    } catch (error) {
      // The reader may have gone, as `head` does.
      if (!(error instanceof Deno.errors.BrokenPipe)) throw error;
    }
    return 0;
  }
  const { run } = await import("./_program.ts");
  return await run(args);
}

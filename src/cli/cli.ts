/**
 * The command line.
 *
 * @module
 */

const VERSION_WORDS: readonly string[] = ["-v", "--version"];

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
  if (args.length === 1 && VERSION_WORDS.includes(args[0] ?? "")) {
    const { VERSION } = await import("../core/version.ts");
    try {
      Deno.stdout.writeSync(new TextEncoder().encode(`${VERSION}\n`));
    } catch (error) {
      // The reader may have gone, as `head` does.
      if (!(error instanceof Deno.errors.BrokenPipe)) throw error;
    }
    return 0;
  }
  const { run } = await import("./_program.ts");
  return await run(args);
}

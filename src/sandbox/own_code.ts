/**
 * Returns the flags for further processes that run the code of this PML.
 *
 * @module
 */

/** Returns the flags of `deno run` with which Deno resolves packages for code as it does for PML. */
export function packageFlags(code: string): readonly string[] {
  const isInstalled = code.includes("/node_modules/");
  // In a checkout, the lock file lists the versions of the indirect packages that Deno has fetched.
  if (code.startsWith("file:") && !isInstalled) return ["--frozen"];
  return ["--no-lock", "--no-config", ...isInstalled ? ["--node-modules-dir=manual"] : []];
}

/**
 * Calls the C library in PML's own process. Children use separate, bundled code for this
 * (`boot/kernel.ts`).
 *
 * @module
 */

/** The number of `landlock_create_ruleset` on x86-64 and ARM. */
const CREATE_RULESET = 444n;
const VERSION = 1n;
/** The oldest version that PML uses: version 1 denies every move between folders. */
const OLDEST = 2;

/** Returns why this system has no Landlock that PML can use; undefined if it has one. */
export function whyNoLandlock(): string | undefined {
  const { os, arch } = Deno.build;
  if (os !== "linux" || !["x86_64", "aarch64"].includes(arch)) return "not on this system";
  try {
    const libc = Deno.dlopen("libc.so.6", {
      syscall: { parameters: ["i64", "i64", "i64", "i64"], result: "i64" },
    });
    const version = Number(libc.symbols.syscall(CREATE_RULESET, 0n, 0n, VERSION));
    libc.close();
    if (version < 0) return "the kernel has none";
    return version < OLDEST ? `version ${version} is too old` : undefined;
  } catch {
    return "no libc.so.6";
  }
}

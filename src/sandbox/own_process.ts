/**
 * Protects PML's own process from other processes of the same user.
 *
 * @module
 */

// PR_SET_DUMPABLE of Linux.
const SET_DUMPABLE = 4;

/**
 * Makes the environment and the memory of this process unreadable to other processes of the user,
 * such as unconfined servers, because the memory contains keys. Does nothing on systems other than
 * Linux with the GNU C library. Programs that this process starts are not affected.
 */
export async function hideOwnProcess(): Promise<void> {
  // Without the permission, `Deno.dlopen` would prompt on a terminal.
  const { state } = Deno.permissions.querySync({ name: "ffi" });
  if (Deno.build.os !== "linux" || state !== "granted") return;
  try {
    // For a blocking call, Deno compiles code, which takes 2 MB.
    const parameters = ["i32", "u64", "u64", "u64", "u64"] as const;
    const libc = Deno.dlopen("libc.so.6", {
      prctl: { parameters, result: "i32", nonblocking: true },
    });
    await libc.symbols.prctl(SET_DUMPABLE, 0n, 0n, 0n, 0n);
    libc.close();
  } catch {
    // This system has another C library.
  }
}

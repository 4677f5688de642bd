/**
 * Tries what must not work, before there is a module. So the sandbox tests itself at each start.
 *
 * @module
 */

/**
 * Returns a sentence for each thing that this thread can do and must not. `files` must be closed to
 * it; `granted` names what is open to it as a whole.
 */
export async function openDoors(
  files: readonly string[],
  granted: Readonly<Record<string, boolean>> = {},
): Promise<string[]> {
  const open: string[] = [];
  for (const file of files) {
    if (!isRefused(() => Deno.readTextFileSync(file))) open.push("it read a closed file");
    if (!isRefused(() => Deno.writeTextFileSync(file, ""))) open.push("it wrote a closed file");
    // Computed, because a literal import would be loaded with the permissions of the parent.
    const url = file.startsWith("/") ? `file://${file}` : `file:///${file.replaceAll("\\", "/")}`;
    await import(url).then(() => open.push("it imported a closed file"), () => {});
  }
  if (!isRefused(() => Deno.env.toObject())) open.push("it read the environment");
  for (const name of ["net", "run", "ffi", "env", "sys"] as const) {
    const { state } = Deno.permissions.querySync({ name });
    if (state === "granted" && !granted[name]) {
      open.push(`it has ${name} access`);
    }
  }
  return open;
}

/** Returns a sentence for each kind of file access that is granted without limits. */
export function fileDoors(): string[] {
  return (["read", "write"] as const)
    .filter((name) => Deno.permissions.querySync({ name }).state === "granted")
    .map((name) => `it may ${name} every file`);
}

function isRefused(attempt: () => unknown): boolean {
  try {
    attempt();
    return false;
  } catch (error) {
    return error instanceof Deno.errors.NotCapable;
  }
}

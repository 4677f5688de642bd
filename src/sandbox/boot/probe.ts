/**
 * The self-test of the sandbox: each start tries forbidden actions before it loads a module.
 *
 * @module
 */

/**
 * Returns a text for each forbidden action that succeeds in this thread. The sandbox must not allow
 * access to `files`. `granted` contains the permissions that are granted without limits.
 */
export async function allowedActions(
  files: readonly string[],
  granted: Readonly<Record<string, boolean>> = {},
): Promise<string[]> {
  const allowed: string[] = [];
  for (const file of files) {
    if (!isRefused(() => Deno.readTextFileSync(file))) allowed.push("it read a protected file");
    if (!isRefused(() => Deno.writeTextFileSync(file, ""))) {
      allowed.push("it wrote a protected file");
    }
    // The import is not literal, because Deno loads a literal import with the parent's permissions.
    const url = file.startsWith("/") ? `file://${file}` : `file:///${file.replaceAll("\\", "/")}`;
    await import(url).then(() => allowed.push("it imported a protected file"), () => {});
  }
  if (!isRefused(() => Deno.env.toObject())) allowed.push("it read the environment");
  for (const name of ["net", "run", "ffi", "env", "sys"] as const) {
    const { state } = Deno.permissions.querySync({ name });
    if (state === "granted" && !granted[name]) {
      allowed.push(`it has ${name} access`);
    }
  }
  return allowed;
}

/** Returns a text for each kind of file access that has no limits. */
export function unlimitedFiles(): string[] {
  return (["read", "write"] as const)
    .filter((name) => Deno.permissions.querySync({ name }).state === "granted")
    .map((name) => `it can ${name} every file`);
}

function isRefused(attempt: () => unknown): boolean {
  try {
    attempt();
    return false;
  } catch (error) {
    return error instanceof Deno.errors.NotCapable;
  }
}

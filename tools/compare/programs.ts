/**
 * Runs programs for comparisons in separate folders, and ends the processes that they leave behind.
 *
 * @module
 */

import { limitedCommand, type Start, STOPPING } from "./connection.ts";

/** The environment variables that all programs get, for finding and downloading packages. */
const PASSED_VARIABLES = [
  ...["PATH", "LANG", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_DIR", "SSL_CERT_FILE"],
  ...["NODE_EXTRA_CA_CERTS", "NPM_CONFIG_REGISTRY", "DENO_CERT", "DENO_TLS_CA_STORE"],
];
/** The folders in which programs may be running. */
const OPEN_FOLDERS = new Set<string>();

/** Creates a folder in which programs may run until `closeFolder()`. */
export async function openFolder(): Promise<string> {
  const folder = await Deno.realPath(await Deno.makeTempDir({ prefix: "pml-compare-" }));
  OPEN_FOLDERS.add(folder);
  return folder;
}

/** Ends all programs. The comparisons then end, and remove their folders. */
export async function closeAllFolders(): Promise<void> {
  STOPPING.abort(new Error("Interrupted"));
  for (let tries = 0; tries < 100 && OPEN_FOLDERS.size > 0; tries++) {
    for (const folder of OPEN_FOLDERS) await endAll(folder);
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
}

/** Ends the processes of a folder and removes it. Returns the names of the ended processes. */
export async function closeFolder(folder: string): Promise<readonly string[]> {
  const endedNames = await endAll(folder);
  for (let tries = 0; tries < 20; tries++) {
    const isGone = await Deno.remove(folder, { recursive: true }).then(() => true, () => false);
    if (isGone) break;
    await new Promise((resolve) => setTimeout(resolve, 250)); // a process still writes to it
  }
  OPEN_FOLDERS.delete(folder);
  return endedNames;
}

/** Runs a program and returns its stdout. If it fails, throws an error with its output. */
export async function run(
  cwd: string,
  start: Pick<Start, "command" | "args">,
  env?: Readonly<Record<string, string>>,
): Promise<string> {
  const { command, args } = limitedCommand(start);
  const { code, stdout, stderr } = await new Deno.Command(command, {
    ...{ args, cwd, stdin: "null", stdout: "piped", stderr: "piped" },
    ...(env !== undefined && { env, clearEnv: true }),
  }).output();
  const [errors = "", output = ""] = [stderr, stdout].map((bytes) =>
    new TextDecoder().decode(bytes)
  );
  if (code === 0) return output;
  const text = `${errors}\n${output}`;
  throw new Error(code === 124 ? "The program took too long" : text.trim().slice(0, 2000));
}

/** Returns the environment variables that every program gets. */
export function passedVariables(): Record<string, string> {
  return Object.fromEntries(PASSED_VARIABLES.flatMap((name) => {
    const value = Deno.env.get(name);
    return value === undefined ? [] : [[name, value]];
  }));
}

/** Ends the processes whose environment contains a folder; on Linux only. Returns their names. */
async function endAll(folder: string): Promise<readonly string[]> {
  if (Deno.build.os !== "linux") return [];
  const endedNames: string[] = [];
  for await (const { name } of Deno.readDir("/proc")) {
    const readProcFile = (file: string) =>
      Deno.readTextFile(`/proc/${name}/${file}`).catch(() => "");
    if (!/^\d+$/.test(name) || !(await readProcFile("environ")).includes(folder)) continue;
    endedNames.push((await readProcFile("comm")).trim());
    try {
      Deno.kill(Number(name), "SIGKILL");
    } catch {
      // The process has already ended.
    }
  }
  return endedNames;
}

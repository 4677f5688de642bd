/**
 * Runs programs for comparisons in separate folders, and ends the processes that they leave.
 *
 * @module
 */

import { bounded, type Start, STOPPING } from "./connection.ts";

/** Names of the own environment that all programs get: where to find and load packages. */
const PASSED = [
  ...["PATH", "LANG", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_DIR", "SSL_CERT_FILE"],
  ...["NODE_EXTRA_CA_CERTS", "NPM_CONFIG_REGISTRY", "DENO_CERT", "DENO_TLS_CA_STORE"],
];
/** The folders in which something may run. */
const OPEN = new Set<string>();

/** Makes a folder in which programs may run until `leave`. */
export async function enter(): Promise<string> {
  const folder = await Deno.realPath(await Deno.makeTempDir({ prefix: "pml-compare-" }));
  OPEN.add(folder);
  return folder;
}

/** Ends all that runs for comparisons, which then end and remove their folders. */
export async function leaveAll(): Promise<void> {
  STOPPING.abort(new Error("Broken off"));
  for (let tries = 0; tries < 100 && OPEN.size > 0; tries++) {
    for (const folder of OPEN) await endAll(folder);
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
}

/** Ends the processes of a folder and removes it. Returns the names of the ended processes. */
export async function leave(folder: string): Promise<readonly string[]> {
  const ended = await endAll(folder);
  for (let tries = 0; tries < 20; tries++) {
    const isGone = await Deno.remove(folder, { recursive: true }).then(() => true, () => false);
    if (isGone) break;
    await new Promise((resolve) => setTimeout(resolve, 250)); // a last process writes there
  }
  OPEN.delete(folder);
  return ended;
}

/** Runs a program to its end and returns its output. Throws with its output. */
export async function run(
  cwd: string,
  start: Pick<Start, "command" | "args">,
  env?: Readonly<Record<string, string>>,
): Promise<string> {
  const { command, args } = bounded(start);
  const { code, stdout, stderr } = await new Deno.Command(command, {
    ...{ args, cwd, stdin: "null", stdout: "piped", stderr: "piped" },
    ...(env !== undefined && { env, clearEnv: true }),
  }).output();
  const [told = "", output = ""] = [stderr, stdout].map((bytes) => new TextDecoder().decode(bytes));
  if (code === 0) return output;
  const said = `${told}\n${output}`;
  throw new Error(code === 124 ? "Took too long" : said.trim().slice(0, 2000));
}

/** Returns the variables of the own environment that every program gets. */
export function passed(): Record<string, string> {
  return Object.fromEntries(PASSED.flatMap((name) => {
    const value = Deno.env.get(name);
    return value === undefined ? [] : [[name, value]];
  }));
}

/** Ends the processes whose environment names a folder, and returns their names; only on Linux. */
async function endAll(folder: string): Promise<readonly string[]> {
  if (Deno.build.os !== "linux") return [];
  const ended: string[] = [];
  for await (const { name } of Deno.readDir("/proc")) {
    const of = (file: string) => Deno.readTextFile(`/proc/${name}/${file}`).catch(() => "");
    if (!/^\d+$/.test(name) || !(await of("environ")).includes(folder)) continue;
    ended.push((await of("comm")).trim());
    try {
      Deno.kill(Number(name), "SIGKILL");
    } catch {
      // It ended by itself.
    }
  }
  return ended;
}

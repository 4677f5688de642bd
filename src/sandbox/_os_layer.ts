/**
 * What this machine holds a child with beside Deno: Landlock, else bubblewrap, else nothing. It is
 * found out once, by trying.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { isInside } from "../io/place.ts";
import { type Program, runProgram } from "./process.ts";
import { findProgram, searchPath } from "./search_path.ts";

/** What the person wants: whatever there is, one layer, none, or no child without one. */
export type OsLayerChoice = "auto" | "landlock" | "bwrap" | "off" | "required";

/** What a child is started under. One that is to be under Landlock refuses to be without. */
export type Layer =
  | { readonly kind: "landlock" }
  | { readonly kind: "bwrap"; readonly program: string; readonly version: string }
  | { readonly kind: "none"; readonly why: string };

/** What a layer is chosen by. */
export interface OsLayerOptions {
  readonly wanted: OsLayerChoice;
  /** The person's `PATH`. */
  readonly path: string | undefined;
  /** Where no program is taken from. */
  readonly workspace: string;
}

const TRIAL_MS = 5_000;
const TRIAL_BYTES = 4_000;
/** What Deno is loaded with, and what tells the time of day. */
const LOADED = [
  ...["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/nix/store", "/etc/ld.so.cache"],
  ...["/etc/localtime", "/usr/share/zoneinfo"],
];
/** What names are resolved with, and whose certificates are believed. */
const NETWORK = [
  ...["nsswitch.conf", "hosts", "host.conf", "resolv.conf", "gai.conf", "services", "protocols"],
  ...["ssl", "pki", "ca-certificates"],
].map((name) => `/etc/${name}`);
const RESOLVERS = ["/usr/share/ca-certificates", "/run/systemd/resolve", "/run/nscd"];

/** Gives what a confined child still reads of the system. */
export function systemPaths(net: boolean): readonly string[] {
  return [...LOADED, ...(net ? [...NETWORK, ...RESOLVERS] : [])];
}

/** Starts children under the best layer that works here. */
export class OsLayers {
  readonly #options: OsLayerOptions;
  #known: Promise<Layer> | undefined;

  /** Takes what the person wants; nothing is tried before the first child. */
  constructor(options: OsLayerOptions) {
    this.#options = options;
  }

  /** Starts a child: under Landlock first, and again under what there is instead if it has none. */
  async start<T>(begin: (layer: Layer) => Promise<T>): Promise<T> {
    if (this.#known !== undefined) return await begin(await this.#known);
    const { wanted } = this.#options;
    const off: Layer = { kind: "none", why: "it is off" };
    if (wanted === "off") return await begin(off);
    // Nothing is started that would be found wanting.
    const lack = wanted === "bwrap"
      ? "it is off"
      : Deno.build.os === "linux"
      ? undefined
      : "not on this system";
    if (lack !== undefined) return await begin(await this.#instead(`no landlock: ${lack}`));
    try {
      return await begin({ kind: "landlock" });
    } catch (error) {
      const why = lackOf(error);
      if (why === undefined) throw error;
      return await begin(await this.#instead(why));
    }
  }

  #instead(why: string): Promise<Layer> {
    return this.#known ??= this.#find(why);
  }

  async #find(lack: string): Promise<Layer> {
    const { wanted } = this.#options;
    const found = wanted === "landlock" ? "it is off" : await findBubblewrap(this.#options);
    if (typeof found === "object") return found;
    const why = `${lack}; no bubblewrap: ${found}`;
    if (wanted !== "required") return { kind: "none", why };
    // The next call looks again: it may have been installed meanwhile.
    this.#known = undefined;
    throw new PmlError("SANDBOX_DENIED", `Cannot run modules: no layer of the system (${why})`, {
      hint: "Install bubblewrap, or set `sandbox.os_layer: auto` in config.yaml",
    });
  }
}

/** Tells what holds a child that told what it did, or the error where it was to do more. */
export function heldBy(layer: Layer | undefined, told: string): string | PmlError {
  if (layer?.kind === "bwrap") return `bubblewrap ${layer.version}`;
  if (layer?.kind === "none") return `none: ${layer.why}`;
  return layer === undefined || told.startsWith("landlock ") ? told : lacking(told);
}

/** Makes the error of a child that was to be under Landlock and has none. */
export function lacking(told: string): PmlError {
  return new PmlError("SANDBOX_DENIED", `Cannot run modules: ${told}`, { detail: { lack: told } });
}

function lackOf(error: unknown): string | undefined {
  const lack = error instanceof PmlError ? error.detail?.lack : undefined;
  return typeof lack === "string" ? lack : undefined;
}

/** Finds a bubblewrap that works, or says why there is none. */
export async function findBubblewrap(
  { path, workspace }: Pick<OsLayerOptions, "path" | "workspace">,
): Promise<Layer & { kind: "bwrap" } | string> {
  if (Deno.build.os !== "linux") return "not on this system";
  const program = findProgram("bwrap", { path: searchPath(path, workspace), workspace });
  if (program === undefined) return "not on PATH";
  const said = await tried(program, ["--version"]);
  const version = /^bubblewrap (\S+)/.exec(said.text)?.[1];
  if (version === undefined) return `${program} gives no version`;
  const nothing = { workspace, read: [], write: [], lock: "/dev/null", own: [], net: false };
  const trial = await tried(program, [...bubblewrapArgs(nothing), Deno.execPath(), "--version"]);
  if (!trial.ok) return `it does not work here: ${trial.text.trim().slice(0, 200)}`;
  return { kind: "bwrap", program, version };
}

/** Runs a program to its end, without the environment; gives what it printed, or why it failed. */
export async function tried(
  file: string,
  args: readonly string[],
  more: Partial<Program> = {},
): Promise<{ readonly ok: boolean; readonly text: string }> {
  try {
    const program = { file, args, cwd: "/", env: {}, kept: true, ...more };
    const { code, stdout, stderr } = await runProgram(program, {
      signal: AbortSignal.timeout(TRIAL_MS),
      maxBytes: TRIAL_BYTES,
    });
    return { ok: code === 0, text: code === 0 ? stdout : stderr };
  } catch (error) {
    return { ok: false, text: String(error) };
  }
}

/** What a child sees. All paths are absolute and real. */
export interface Sight {
  readonly workspace: string;
  readonly read: readonly string[];
  readonly write: readonly string[];
  readonly lock: string;
  /** The private folders of the child: its temporary folder and its `DENO_DIR`. */
  readonly own: readonly string[];
  readonly net: boolean;
}

/** Gives what bubblewrap is told before the program and its arguments. */
export function bubblewrapArgs({ workspace, read, write, lock, own, net }: Sight): string[] {
  // Mounted by a part of the workspace, a link that is swapped in would count as the folder itself.
  const roots = (given: readonly string[]) =>
    given.map((root) => isInside(workspace, root) ? workspace : root);
  const writable = [...roots(write), ...own];
  const readable = [...roots(read), lock, ...systemPaths(net), Deno.execPath()]
    .filter((path) => !writable.some((root) => isInside(root, path)));
  const mounts = [
    ...readable.map((path) => ["--ro-bind-try", path, path]),
    ...writable.map((path) => ["--bind-try", path, path]),
  ];
  // What lies within another comes after it.
  mounts.sort(([, a = ""], [, b = ""]) => a.length - b.length);
  return [
    ...["--unshare-all", "--die-with-parent", "--new-session", "--as-pid-1", "--cap-drop", "ALL"],
    ...(net ? ["--share-net"] : []),
    ...mounts.flat(),
    ...["--dev", "/dev", "--proc", "/proc"],
    // What is not mounted is not there, and nothing is made beside it.
    ...["--remount-ro", "/", "--chdir", own.at(-1) ?? "/", "--"],
  ];
}

/** Counts the processes and threads of this person; undefined where nobody tells. */
export function processesOf(uid: number): number {
  let all = 0;
  for (const { name } of Deno.readDirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const tasks = Deno.statSync(`/proc/${name}/task`);
      if (tasks.uid === uid) all += (tasks.nlink ?? 2) - 2;
    } catch {
      // It ended meanwhile.
    }
  }
  return all;
}

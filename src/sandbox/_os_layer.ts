/**
 * Finds the layer that confines children in addition to Deno: Landlock, or else bubblewrap, or else
 * none. PML tries the layers only once.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { infoAt, isInside, realPathIfAny } from "../io/path_info.ts";
import { runProgram } from "./process.ts";
import type { Program } from "./program.ts";
import { findProgram, searchPath } from "./search_path.ts";
import type { Layer } from "./layer.ts";

/**
 * The user's setting: use any available layer, only one layer, or none, or require one.
 */
export type OsLayerChoice = "auto" | "landlock" | "bwrap" | "off" | "required";

/** The limits of a trial run of a program: milliseconds, and bytes of each output. */
const TRIAL_MS = 5_000;
const TRIAL_BYTES = 4_000;
/** The files that Deno itself loads, and the time zones. */
const LOADED = [
  ...["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/nix/store", "/etc/ld.so.cache"],
  ...["/etc/localtime", "/usr/share/zoneinfo"],
];
/** The files for resolving names, and the certificates. */
const NETWORK = [
  ...["nsswitch.conf", "hosts", "host.conf", "resolv.conf", "gai.conf", "services", "protocols"],
  ...["ssl", "pki", "ca-certificates"],
].map((name) => `/etc/${name}`);
const RESOLVERS = ["/usr/share/ca-certificates", "/run/systemd/resolve", "/run/nscd"];

/** Returns the paths of the system that a confined child can still read. */
export function systemPaths(net: boolean): readonly string[] {
  return [...LOADED, ...(net ? [...NETWORK, ...RESOLVERS] : [])];
}

/** Starts children with the best layer that works on this machine. */
export class OsLayers {
  readonly #choice: OsLayerChoice;
  readonly #path: string | undefined;
  readonly #workspace: string;
  #layer: Promise<Layer> | undefined;

  /**
   * Creates an instance that tries nothing before the first child starts. Programs are found on the
   * user's `path`, but not in the workspace.
   */
  constructor(choice: OsLayerChoice, path: string | undefined, workspace: string) {
    this.#choice = choice;
    this.#path = path;
    this.#workspace = workspace;
  }

  /**
   * Calls `begin`, which starts a child, with Landlock first. If Landlock is missing, calls it
   * again with another layer.
   */
  async start<T>(begin: (layer: Layer) => Promise<T>): Promise<T> {
    if (this.#layer !== undefined) return await begin(await this.#layer);
    const choice = this.#choice;
    const off: Layer = { kind: "none", why: "it is off" };
    if (choice === "off") return await begin(off);
    // After Landlock was missing once, `#layer` is set, and it is not tried again.
    const lack = choice === "bwrap"
      ? "it is off"
      : Deno.build.os === "linux"
      ? undefined
      : "not on this system";
    if (lack !== undefined) return await begin(await this.#otherLayer(`no landlock: ${lack}`));
    try {
      return await begin({ kind: "landlock" });
    } catch (error) {
      const why = lackOf(error);
      if (why === undefined) throw error;
      return await begin(await this.#otherLayer(why));
    }
  }

  #otherLayer(why: string): Promise<Layer> {
    return this.#layer ??= this.#find(why);
  }

  async #find(lack: string): Promise<Layer> {
    const choice = this.#choice;
    const bubblewrap = choice === "landlock"
      ? "it is off"
      : await findBubblewrap(this.#path, this.#workspace);
    if (typeof bubblewrap === "object") return bubblewrap;
    const why = `${lack}; no bubblewrap: ${bubblewrap}`;
    if (choice !== "required") return { kind: "none", why };
    // The next call tries again, because bubblewrap may be installed by then.
    this.#layer = undefined;
    throw new PmlError("SANDBOX_DENIED", `Cannot run modules: no layer can confine them (${why})`, {
      hint: "Install bubblewrap, or set `sandbox.os_layer: auto`",
    });
  }
}

/**
 * Returns the layer that confines a child, from the child's report. Returns an error if the child
 * lacks the required layer.
 */
export function confinementOf(layer: Layer | undefined, report: string): string | PmlError {
  if (layer?.kind === "bwrap") return `bubblewrap ${layer.version}`;
  if (layer?.kind === "none") return `none: ${layer.why}`;
  return layer === undefined || report.startsWith("landlock ") ? report : lackError(report);
}

/** Returns the error for a child that was started with Landlock, but does not have it. */
export function lackError(reason: string): PmlError {
  return new PmlError("SANDBOX_DENIED", `Cannot run modules: ${reason}`, {
    detail: { lack: reason },
  });
}

function lackOf(error: unknown): string | undefined {
  const lack = error instanceof PmlError ? error.detail?.lack : undefined;
  return typeof lack === "string" ? lack : undefined;
}

/** Finds a bubblewrap that works. Returns the reason if there is none. */
export async function findBubblewrap(
  path: string | undefined,
  workspace: string,
): Promise<Layer & { kind: "bwrap" } | string> {
  if (Deno.build.os !== "linux") return "not on this system";
  const program = findProgram("bwrap", { path: searchPath(path, workspace), workspace });
  if (program === undefined) return "not on PATH";
  const output = await runToEnd(program, ["--version"]);
  const version = /^bubblewrap (\S+)/.exec(output.text)?.[1];
  if (version === undefined) return `${program} prints no version`;
  const nothing = {
    workspace,
    read: [],
    write: [],
    lock: "/dev/null",
    privateFolders: [],
    net: false,
  };
  const args = [...bubblewrapArgs(nothing), Deno.execPath(), "--version"];
  const trial = await runToEnd(program, args);
  if (!trial.ok) return `it does not work here: ${trial.text.trim().slice(0, 200)}`;
  return { kind: "bwrap", program, version };
}

/**
 * Runs a program to its end with an empty environment. Returns its output, or why it failed.
 */
export async function runToEnd(
  file: string,
  args: readonly string[],
  more: Partial<Program> = {},
): Promise<{ readonly ok: boolean; readonly text: string }> {
  try {
    const program = { file, args, cwd: "/", env: {}, hasKeeper: true, ...more };
    const { code, stdout, stderr } = await runProgram(program, {
      ms: TRIAL_MS,
      maxBytes: TRIAL_BYTES,
    });
    return { ok: code === 0, text: code === 0 ? stdout : stderr };
  } catch (error) {
    return { ok: false, text: String(error) };
  }
}

/** The paths that a child can see. All are absolute and real. */
export interface Sight {
  readonly workspace: string;
  readonly read: readonly string[];
  readonly write: readonly string[];
  readonly lock: string;
  /** The private folders of the child: its temporary folder and its `DENO_DIR`. */
  readonly privateFolders: readonly string[];
  readonly net: boolean;
  /** The folder that it starts in; by default the last private folder. */
  readonly cwd?: string;
  readonly covers?: Covers;
}

/** Paths in the workspace that are mounted over, so that moving a folder does not open them. */
export interface Covers {
  /** Files and folders that can be read but not changed. */
  readonly readOnly: readonly string[];
  /** Files and folders that cannot be read. */
  readonly hidden: readonly string[];
  /** Folders that cannot be moved. Files in them can be changed. */
  readonly fixed: readonly string[];
}

/** Returns the arguments of bubblewrap that come before the program and its arguments. */
export function bubblewrapArgs(sight: Sight): string[] {
  const { workspace, read, write, lock, privateFolders, net, covers } = sight;
  const { cwd = privateFolders.at(-1) ?? "/" } = sight;
  // For a path inside the workspace, the whole workspace is mounted: if a link replaced the path,
  // bubblewrap would mount the link's target.
  const roots = (paths: readonly string[]) =>
    paths.map((root) => isInside(workspace, root) ? workspace : root);
  const writable = [...roots(write), ...privateFolders];
  const all = [...roots(read), lock, ...systemPaths(net), Deno.execPath()];
  // bubblewrap cannot mount onto a link, such as `/etc/localtime`, in a folder that is mounted.
  const readable = all.filter((path) =>
    !writable.some((root) => isInside(root, path)) &&
    !all.some((root) => root !== path && isInside(root, path))
  );
  const mounts = [
    ...readable.map((path) => ["--ro-bind-try", path, path]),
    ...writable.map((path) => ["--bind-try", path, path]),
    ...(covers === undefined ? [] : coverMounts(covers)),
  ];
  // A path inside another path must be mounted after it.
  mounts.sort((a, b) => (a.at(-1) ?? "").length - (b.at(-1) ?? "").length);
  return [
    ...["--unshare-all", "--die-with-parent", "--new-session", "--as-pid-1", "--cap-drop", "ALL"],
    ...(net ? ["--share-net"] : []),
    ...mounts.flat(),
    ...["--dev", "/dev", "--proc", "/proc"],
    // Paths that are not mounted do not exist for the child, and it cannot create anything next to
    // the mounts.
    ...["--remount-ro", "/", "--chdir", cwd, "--"],
  ];
}

/** Returns the mounts of covers, without links, because bubblewrap would follow them. */
function coverMounts({ readOnly, hidden, fixed }: Covers): string[][] {
  const existing = (paths: readonly string[]) =>
    [...new Set(paths)].filter((path) => realPathIfAny(path) === path);
  const isHidden = new Set(hidden);
  return [
    ...existing(fixed).map((path) => ["--bind-try", path, path]),
    ...existing(readOnly).filter((path) => !isHidden.has(path))
      .map((path) => ["--ro-bind-try", path, path]),
    ...existing(hidden).map((path) =>
      infoAt(path)?.isDirectory ? ["--tmpfs", path] : ["--ro-bind-try", "/dev/null", path]
    ),
  ];
}

/** Returns how many processes and threads a user has. */
export function countProcesses(uid: number): number {
  let count = 0;
  for (const { name } of Deno.readDirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const tasks = Deno.statSync(`/proc/${name}/task`);
      if (tasks.uid === uid) count += (tasks.nlink ?? 2) - 2;
    } catch {
      // The process ended in the meantime.
    }
  }
  return count;
}

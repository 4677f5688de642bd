/**
 * Confines a child with Landlock: its host thread drops access to all files outside its grants
 * before the Worker starts. Therefore a link that replaces a path between a check and an open
 * cannot lead outside.
 *
 * @module
 */

import type { Kernel, RulesetRights, WithKernel } from "./kernel.ts";
import { lookAt } from "./path_guard.ts";
import { parentOf, within } from "./names.ts";
import type { ProgramLimits } from "./message.ts";

/** The flag that opens a path without access to its content. */
export const PATH_ONLY = 0o12000000; // O_PATH and O_CLOEXEC
/** Opens a path only if no part of it is a link. */
const NO_LINKS = 4; // RESOLVE_NO_SYMLINKS

/** The files and the network that a child may still use. All paths are absolute and real. */
export interface LandlockRules {
  readonly workspace: string;
  readonly read: readonly string[];
  readonly write: readonly string[];
  readonly lock: string;
  /** The private folders of the child: its temporary folder and its `DENO_DIR`. */
  readonly privateFolders: readonly string[];
  /**
   * The paths of the system that it reads: libraries, time zones, and settings to resolve names.
   */
  readonly system: readonly string[];
  /** A file outside the grants. A check that it cannot be opened proves that the rules work. */
  readonly canary: string;
  /** Whether it may connect; if not, the kernel refuses TCP. */
  readonly net: boolean;
  /** The limits of programs, if it may run some. Then all files can be read and executed. */
  readonly programs?: ProgramLimits;
}

export const EXECUTE = 1;
const WRITE_FILE = 1 << 1;
const READ_FILE = 1 << 2;
export const READ = READ_FILE | 1 << 3;
const TRUNCATE = 1 << 14;
export const IOCTL_DEV = 1 << 15;
export const RESOLVE_UNIX = 1 << 16;
/**
 * The rights to remove files and folders, make files, folders and links, move between folders, and
 * truncate.
 */
export const CHANGE = WRITE_FILE | 3 << 4 | 3 << 7 | 3 << 12 | TRUNCATE;
/** The rights that can be granted on a file. */
export const OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV | RESOLVE_UNIX;

// Resource numbers of the system.
const CORE = 4;
const PROCESSES = 6;
const WRITE_ONLY = 1;
/** The paths that the runtime reads while it runs. */
const RUNTIME = [
  ...["/dev/null", "/dev/urandom", "/proc/self", "/proc/meminfo", "/sys/fs/cgroup"],
  ...["/proc/sys/vm/overcommit_memory", "/sys/devices/system/cpu"],
];
/** The devices that programs write to. */
const DEVICES = ["null", "zero", "full", "tty", "ptmx", "pts", "shm"];

/**
 * Confines this thread, the threads that it starts and, if the kernel supports it, the whole
 * process. Returns `landlock` and its version, or why Landlock is not used. Throws if the rules do
 * not work.
 */
export function confine(rules: LandlockRules): string {
  const { os, arch } = Deno.build;
  if (os !== "linux" || !["x86_64", "aarch64"].includes(arch)) {
    return "no landlock: not on this system";
  }
  try {
    using kernel = (globalThis as WithKernel).Kernel.open();
    if (kernel === undefined) return "no landlock: no libc.so.6";
    kernel.widenOutput();
    limit(kernel, rules.programs);
    return applyRules(kernel, rules);
  } finally {
    // FFI is not needed any longer, so the module must not use it.
    Deno.permissions.revokeSync({ name: "ffi" });
  }
}

function limit(kernel: Kernel, programs: ProgramLimits | undefined): void {
  // A core dump would contain data that the process has read.
  kernel.limit(CORE, 0);
  if (programs !== undefined) kernel.limit(PROCESSES, programs.processes);
}

function applyRules(kernel: Kernel, rules: LandlockRules): string {
  if (rules.programs?.writesOnly === false) return "no landlock: it runs programs";
  const version = kernel.landlockVersion();
  if (typeof version === "string") return `no landlock: ${version}`;
  const handled = handledBy(version, rules);
  const ruleset = kernel.newRuleset(handled);
  for (const [opened, rights] of rulesOf(kernel, rules)) {
    const access = rights & handled.files;
    kernel.allow(ruleset, opened, [access, access & OF_FILES]);
  }
  kernel.restrict(ruleset, version);
  assertConfined(kernel, rules);
  return `landlock ${version}`;
}

/**
 * Returns the rights that a version of Landlock can control and that this child must not have
 * everywhere.
 */
export function handledBy(
  version: number,
  { net, programs }: Pick<LandlockRules, "net" | "programs">,
): RulesetRights {
  const since: readonly (readonly [number, number])[] = [
    [2, (1 << 14) - 1],
    [3, TRUNCATE],
    [5, IOCTL_DEV],
    [9, RESOLVE_UNIX],
  ];
  const access = since.reduce((all, [from, rights]) => version < from ? all : all | rights, 0);
  const free = programs ? EXECUTE | READ | IOCTL_DEV | RESOLVE_UNIX : 0;
  return {
    files: access & ~free,
    network: version < 4 || net || programs ? 0 : 3,
    scopes: version < 6 || programs ? 0 : 3,
  };
}

function rulesOf(kernel: Kernel, rules: LandlockRules): [number, number][] {
  const { workspace, read, write, privateFolders, net, programs } = rules;
  // The rights include creating links, because the kernel requires it to move a link.
  const writeRights = READ | CHANGE;
  const granted = (roots: readonly string[], rights: number) =>
    roots.map((root): [number, number] => [rootOf(kernel, root, workspace), rights]);
  const exactPaths = (paths: readonly string[], rights: number) =>
    paths.map((path): [number, number] => [kernel.openPath(path, PATH_ONLY), rights]);
  return [
    ...granted(read, READ),
    ...granted(write, writeRights),
    ...exactPaths([rules.lock], READ),
    ...exactPaths(privateFolders, writeRights),
    ...exactPaths(RUNTIME, READ),
    // Resolving names connects to sockets of the system.
    ...exactPaths(rules.system, READ | (net ? RESOLVE_UNIX : 0)),
    ...(programs
      ? exactPaths(DEVICES.map((name) => `/dev/${name}`), READ | CHANGE)
      : exactPaths(["/dev/null"], WRITE_FILE)),
  ];
}

/**
 * Opens a root without following links. If it is a file in the workspace, or does not exist yet,
 * its folder is opened instead, because editors replace a file by a new file.
 */
function rootOf(kernel: Kernel, root: string, workspace: string): number {
  let path = root;
  while (path !== workspace && within(workspace, path)) {
    const folder = kernel.openPath(`${path}/.`, PATH_ONLY, NO_LINKS);
    // Another call may have changed the error code, so this checks the path itself.
    const info = folder < 0 ? lookAt(path) : undefined;
    if (folder >= 0 || info?.isDirectory || info?.isSymlink) return folder;
    path = parentOf(path);
  }
  return kernel.openPath(path, PATH_ONLY, NO_LINKS);
}

/** Throws if a forbidden access works. Paths inside the roots are not tried. */
function assertConfined(kernel: Kernel, { canary, read, write, programs }: LandlockRules): void {
  const [flags, roots] = programs ? [WRITE_ONLY, write] : [0, [...read, ...write]];
  const forbidden = programs ? [canary] : [canary, "/"];
  for (const path of forbidden.filter((path) => !roots.some((root) => within(root, path)))) {
    if (kernel.openPath(path, flags) >= 0) throw new Error("landlock does not hold");
  }
}

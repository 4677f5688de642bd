/**
 * Uses Landlock to confine a program that is not a module: this process drops access to all files
 * outside the program's reach. Then the program replaces this process.
 *
 * @module
 */

import type { WithKernel } from "./kernel.ts";
import {
  CHANGE,
  EXECUTE,
  handledBy,
  IOCTL_DEV,
  OF_FILES,
  PATH_ONLY,
  READ,
  RESOLVE_UNIX,
} from "./landlock.ts";

/**
 * The paths that a program and its child processes may read and write. All are absolute and real.
 */
export interface Reach {
  readonly read: readonly string[];
  readonly write: readonly string[];
  /**
   * Folders in which the program may write, but not move or remove folders or create or move links.
   * Paths that Deno protects stay protected, because the folders above them cannot be moved.
   */
  readonly fixed?: readonly string[];
}

/**
 * Files that describe the system. The files of processes are missing, because they contain
 * environments, which root could read.
 */
const SYSTEM = [
  ...["cpuinfo", "meminfo", "stat", "version", "loadavg", "uptime", "filesystems", "sys"]
    .map((name) => `/proc/${name}`),
  ...["/sys/fs/cgroup", "/sys/devices/system", "/dev/urandom", "/dev/random"],
];
/** The rights to remove a folder, which a move requires, and to create a link. */
const MOVE_FOLDERS = 1 << 4 | 1 << 12;
const DEVICES = ["/dev/null", "/dev/zero", "/dev/full"];

/**
 * Confines this thread and the program that replaces it. Returns `landlock` and its version, or the
 * reason why it cannot confine.
 */
export function confineTo({ read, write, fixed = [] }: Reach): string {
  using kernel = (globalThis as WithKernel).Kernel.open();
  if (kernel === undefined) return "no landlock: no libc.so.6";
  const version = kernel.landlockVersion();
  if (typeof version === "string") return `no landlock: ${version}`;
  const handled = handledBy(version, { net: true });
  // Execution is not restricted, so the program can execute all files that it can read.
  const files = handled.files & ~(EXECUTE | IOCTL_DEV);
  const ruleset = kernel.newRuleset({ ...handled, files });
  const allow = (paths: readonly string[], rights: number) => {
    const access = [rights & files, rights & files & OF_FILES];
    for (const path of paths) kernel.allow(ruleset, kernel.openPath(path, PATH_ONLY), access);
  };
  allow([...read, ...SYSTEM], READ | RESOLVE_UNIX);
  allow([...write, ...DEVICES], READ | CHANGE | RESOLVE_UNIX);
  allow(fixed, (READ | CHANGE | RESOLVE_UNIX) & ~MOVE_FOLDERS);
  kernel.restrict(ruleset, version);
  return kernel.openPath("/", 0) < 0 ? `landlock ${version}` : "landlock does not hold";
}

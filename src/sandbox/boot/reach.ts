/**
 * Confines a program that is not a module with Landlock: this process gives up all files but those
 * that it was given, and then becomes that program.
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
 * The paths that a program, and all that it starts, may read and write. All are absolute and real.
 */
export interface Reach {
  readonly read: readonly string[];
  readonly write: readonly string[];
  /**
   * Folders where it may write, but neither move or remove a folder, nor make or move a link. A path
   * that Deno closes there stays closed, because no folder above it can be moved.
   */
  readonly fixed?: readonly string[];
}

/**
 * Files that describe the system. Those of processes are not among them, because root could read
 * their environment.
 */
const SYSTEM = [
  ...["cpuinfo", "meminfo", "stat", "version", "loadavg", "uptime", "filesystems", "sys"]
    .map((name) => `/proc/${name}`),
  ...["/sys/fs/cgroup", "/sys/devices/system", "/dev/urandom", "/dev/random"],
];
/** The rights to remove a folder, which moving one needs, and to make a link. */
const MOVE_FOLDERS = 1 << 4 | 1 << 12;
const DEVICES = ["/dev/null", "/dev/zero", "/dev/full"];

/**
 * Confines this thread and the program that it becomes. Returns `landlock` and its version, or why
 * that is not possible.
 */
export function confineTo({ read, write, fixed = [] }: Reach): string {
  using kernel = (globalThis as WithKernel).Kernel.open();
  if (kernel === undefined) return "no landlock: no libc.so.6";
  const version = kernel.landlockVersion();
  if (typeof version === "string") return `no landlock: ${version}`;
  const handled = handledBy(version, { net: true });
  // What it can read, it may also run.
  const files = handled.files & ~(EXECUTE | IOCTL_DEV);
  const ruleset = kernel.newRuleset({ ...handled, files });
  const allow = (paths: readonly string[], rights: number) => {
    const known = [rights & files, rights & files & OF_FILES];
    for (const path of paths) kernel.allow(ruleset, kernel.openPath(path, PATH_ONLY), known);
  };
  allow([...read, ...SYSTEM], READ | RESOLVE_UNIX);
  allow([...write, ...DEVICES], READ | CHANGE | RESOLVE_UNIX);
  allow(fixed, (READ | CHANGE | RESOLVE_UNIX) & ~MOVE_FOLDERS);
  kernel.restrict(ruleset, version);
  return kernel.openPath("/", 0) < 0 ? `landlock ${version}` : "landlock does not hold";
}

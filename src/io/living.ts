/**
 * Tells whether a process lives.
 *
 * @module
 */

import process from "node:process";

/** Returns whether a process lives, whoever owns it. */
export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // ESRCH: there is no process with that number. EPERM: there is one, of another user.
    return Object(error).code !== "ESRCH";
  }
}

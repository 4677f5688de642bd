/**
 * Runs a program in a session of its own whose keyring is unlocked.
 *
 * @module
 */

import type { Command } from "./pml_command.ts";

/** Unlocks a keyring, then runs what follows. */
const UNLOCKED =
  "printf pw | gnome-keyring-daemon --unlock --components=secrets >/dev/null 2>&1\n" +
  'exec "$@"';

/** Returns the command that runs another one there. */
export function inSession(command: Command): Command {
  return ["dbus-run-session", "--", "sh", "-c", UNLOCKED, "sh", ...command];
}

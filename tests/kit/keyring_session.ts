/**
 * Runs a program in a separate session whose keyring is unlocked.
 *
 * @module
 */

import type { Command } from "./pml_command.ts";

/**
 * Unlocks a keyring, then runs the command. The second call of the daemon waits until it is on the
 * bus: an earlier client would start another daemon, whose keyring is locked and which asks on a
 * screen. Each session has a separate folder, where no daemon of an earlier one answers.
 */
const UNLOCKED =
  'XDG_RUNTIME_DIR=$(mktemp -d "$XDG_RUNTIME_DIR/XXXXXX") && export XDG_RUNTIME_DIR\n' +
  "printf pw | gnome-keyring-daemon --unlock --components=secrets >/dev/null 2>&1\n" +
  "gnome-keyring-daemon --start --components=secrets >/dev/null 2>&1\n" +
  'exec "$@"';

/** Returns the command that runs another command there. */
export function inSession(command: Command): Command {
  return ["dbus-run-session", "--", "sh", "-c", UNLOCKED, "sh", ...command];
}

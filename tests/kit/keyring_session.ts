/**
 * Runs a program in a session of its own whose keyring is unlocked.
 *
 * @module
 */

import type { Command } from "./pml_command.ts";

/**
 * Unlocks a keyring, then runs what follows. The second word of the daemon waits until it is on the
 * bus: who came before had another daemon started, whose keyring is locked and which asks on a
 * screen. Each session has a folder of its own, where no daemon of an earlier one answers.
 */
const UNLOCKED =
  'XDG_RUNTIME_DIR=$(mktemp -d "$XDG_RUNTIME_DIR/XXXXXX") && export XDG_RUNTIME_DIR\n' +
  "printf pw | gnome-keyring-daemon --unlock --components=secrets >/dev/null 2>&1\n" +
  "gnome-keyring-daemon --start --components=secrets >/dev/null 2>&1\n" +
  'exec "$@"';

/** Returns the command that runs another one there. */
export function inSession(command: Command): Command {
  return ["dbus-run-session", "--", "sh", "-c", UNLOCKED, "sh", ...command];
}

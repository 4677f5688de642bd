/**
 * What becomes of the pins when something is first seen, or approved.
 *
 * @module
 */

import type { Pinned, ServerIdentity } from "../core/server_identity.ts";
import { defined } from "../core/json.ts";
import type { ToolDefinition } from "../core/tool.ts";
import {
  type LockEntries,
  type LockEntry,
  lockText,
  pinnedChanges,
  pinnedIn,
} from "../registry/lock.ts";
import type { PinState } from "./_pin_files.ts";

/** A server, or a tool of it, that is to be pinned as it is now. */
export interface Pin {
  readonly identity: ServerIdentity;
  readonly tool?: { readonly definition: ToolDefinition; readonly hash: string };
  /** Whether the person said so: then it takes the place of what was pinned. */
  readonly isSaid: boolean;
}

type Kept = Pick<PinState, "lock" | "home">;

/** Gives what is pinned then. */
export function pinsAfter({ lock, home }: Kept, pins: readonly Pin[]): Kept {
  const shared = pins.filter(({ identity }) => identity.origin !== "person");
  return { lock: shared.reduce(withPin, lock), home: pins.reduce(withPin, home) };
}

/** Tells whether something would be pinned that is not yet. */
export function changesPins(now: Kept, pin: Omit<Pin, "isSaid">): boolean {
  const after = pinsAfter(now, [{ ...pin, isSaid: false }]);
  const { name } = pin.identity;
  const text = (entries: LockEntries) => {
    const entry = pinnedIn(entries, name);
    return lockText(entry === undefined ? {} : { [name]: entry });
  };
  return text(after.lock) !== text(now.lock) || text(after.home) !== text(now.home);
}

/**
 * Says what of a server is not covered by the trust in the file that names it: another source, and
 * for the command that was shown another package than it installed before.
 */
export function uncovered(was: Pinned, { pinned, origin }: ServerIdentity): readonly string[] {
  const isSameCommand = pinned.kind === "stdio" && isSame(was, pinned);
  if (origin === "registry") {
    // What the command installs is known only once it was approved.
    const integrity = isSameCommand ? was.integrity ?? pinned.integrity : was.integrity;
    const now = isSameCommand ? { ...pinned, integrity: pinned.integrity ?? integrity } : pinned;
    return pinnedChanges({ ...was, ...defined({ integrity }) }, now);
  }
  const { source, kind, version = was.version, integrity = was.integrity } = pinned;
  const before = { source: was.source, kind };
  if (!isSameCommand) return pinnedChanges(before, { source, kind });
  return pinnedChanges(
    { ...before, version: was.version ?? version, integrity: was.integrity ?? integrity },
    { source, kind, version, integrity },
  );
}

function withPin(entries: LockEntries, { identity, tool, isSaid }: Pin): LockEntries {
  const was = pinnedIn(entries, identity.name);
  const isAsked = was !== undefined && uncovered(was, identity).length > 0;
  // What is asked about is not changed without a word.
  const entry = isAsked && (!isSaid || tool !== undefined) ? was : asNow(was, identity.pinned);
  const isNew = tool === undefined || isSaid || identity.pinned.kind === "deno" ||
    pinnedIn(entry.tools, tool.definition.name) === undefined;
  const more = tool && isNew ? { [tool.definition.name]: tool.hash } : {};
  return { ...entries, [identity.name]: { ...entry, tools: { ...entry.tools, ...more } } };
}

function asNow(was: LockEntry | undefined, pinned: Pinned): LockEntry {
  const tools = was?.source === pinned.source ? was.tools : {};
  // A package that is not there yet has no version to tell.
  const { version, integrity } = was !== undefined && isSame(was, pinned) ? was : pinned;
  return { ...defined({ version, integrity, ...defined(pinned) }), tools };
}

function isSame(was: Pinned, is: Pinned): boolean {
  return was.kind === is.kind && JSON.stringify(was.command) === JSON.stringify(is.command) &&
    was.command !== undefined;
}

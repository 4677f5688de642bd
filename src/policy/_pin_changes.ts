/**
 * Updates the pins when a server or tool is first used or approved.
 *
 * @module
 */

import type { Pinned, ServerIdentity } from "./server_identity.ts";
import { memberOf, withoutUndefined } from "../core/json.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { type LockEntries, type LockEntry, lockText, pinnedChanges } from "./lock.ts";
import { kindOf } from "../servers/kinds.ts";
import type { PinState } from "./_pin_files.ts";

/** A server, or one of its tools, whose current state is to be pinned. */
export interface Pin {
  readonly identity: ServerIdentity;
  readonly tool?: { readonly definition: ToolDefinition; readonly hash: string };
  /** Whether the user approved it. Only an approved pin replaces a pin that differs. */
  readonly isApproved: boolean;
}

type PinEntries = Pick<PinState, "lock" | "home">;

/** Returns the entries after more pins were added. */
export function pinsAfter({ lock, home }: PinEntries, pins: readonly Pin[]): PinEntries {
  const shared = pins.filter(({ identity }) => identity.isInLock)
    .map((pin) => ({ ...pin, identity: sharedIdentity(pin.identity) }));
  return { lock: shared.reduce(withPin, lock), home: pins.reduce(withPin, home) };
}

/** Returns whether a pin would change the pins. */
export function changesPins(now: PinEntries, pin: Omit<Pin, "isApproved">): boolean {
  const after = pinsAfter(now, [{ ...pin, isApproved: false }]);
  const { name } = pin.identity;
  const text = (entries: LockEntries) => {
    const entry = memberOf(entries, name);
    return lockText(entry === undefined ? {} : { [name]: entry });
  };
  return text(after.lock) !== text(now.lock) || text(after.home) !== text(now.home);
}

/**
 * Returns the changes of a server that need an approval. If the trust in its file covers the
 * server, these are only another source or kind, another package for the same command, other
 * variables in its `envFile`, or another host in its address. Otherwise they are all changes.
 */
export function uncoveredChanges(
  was: Pinned,
  { pinned, isCoveredByTrust }: ServerIdentity,
): readonly string[] {
  const isSameCommand = hasSameCommand(was, pinned);
  if (!isCoveredByTrust) {
    // PML knows the package of a command only after the command was approved.
    const integrity = isSameCommand ? was.integrity ?? pinned.integrity : was.integrity;
    const now = isSameCommand ? { ...pinned, integrity: pinned.integrity ?? integrity } : pinned;
    return pinnedChanges({ ...was, ...withoutUndefined({ integrity }) }, now);
  }
  const { source, kind, version = was.version, integrity = was.integrity } = pinned;
  const isSameUrl = was.url !== undefined && was.url === pinned.url;
  const { address } = pinned;
  const before = { source: was.source, kind };
  if (isSameUrl) {
    return pinnedChanges({ ...before, address: was.address ?? address }, { source, kind, address });
  }
  if (!isSameCommand) return pinnedChanges(before, { source, kind });
  const { envFile } = pinned;
  return pinnedChanges(
    {
      ...before,
      version: was.version ?? version,
      integrity: was.integrity ?? integrity,
      envFile: was.envFile ?? envFile,
    },
    { source, kind, version, integrity, envFile },
  );
}

/** Returns the identity as `pml.lock` pins it: without facts that differ between machines. */
export function sharedIdentity(identity: ServerIdentity): ServerIdentity {
  const { envFile: _envFile, address: _address, ...pinned } = identity.pinned;
  return { ...identity, pinned };
}

function withPin(entries: LockEntries, { identity, tool, isApproved }: Pin): LockEntries {
  const was = memberOf(entries, identity.name);
  const isStale = was !== undefined && uncoveredChanges(was, identity).length > 0;
  // The pin does not change until the user has approved the change.
  const entry = isStale && (!isApproved || tool !== undefined)
    ? was
    : updatedEntry(was, identity.pinned);
  const isNew = tool === undefined || isApproved || kindOf(identity.pinned).isSandboxed ||
    memberOf(entry.tools, tool.definition.name) === undefined;
  const more = tool && isNew ? { [tool.definition.name]: tool.hash } : {};
  return { ...entries, [identity.name]: { ...entry, tools: { ...entry.tools, ...more } } };
}

function updatedEntry(was: LockEntry | undefined, pinned: Pinned): LockEntry {
  const tools = was?.source === pinned.source ? was.tools : {};
  // The version of a package is unknown until it is installed.
  const { version, integrity } = was !== undefined && hasSameCommand(was, pinned) ? was : pinned;
  return { ...withoutUndefined({ version, integrity, ...withoutUndefined(pinned) }), tools };
}

function hasSameCommand(was: Pinned, is: Pinned): boolean {
  return was.kind === is.kind && JSON.stringify(was.command) === JSON.stringify(is.command) &&
    was.command !== undefined;
}

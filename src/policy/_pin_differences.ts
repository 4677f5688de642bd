/**
 * Compares servers and tools with their pins, and describes differences in lines for the user.
 *
 * @module
 */

import { isOwnPin, type ServerIdentity, type Unapproved } from "./server_identity.ts";
import { memberOf, quoted, withoutUndefined } from "../core/json.ts";
import { INSTRUCTIONS } from "../protocol/lists.ts";
import { isSkillPin } from "../protocol/skills.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { definitionChanges } from "./definition_changes.ts";
import { definitionHash } from "./integrity.ts";
import { type LockEntry, pinnedChanges } from "./lock.ts";
import { kindOf } from "../servers/kinds.ts";
import { type Pin, sharedIdentity, uncoveredChanges } from "./_pin_changes.ts";
import type { PinState } from "./_pin_files.ts";
import { LOCK_NAME } from "./pins_file.ts";

/** How a server or tool differs from its pins. `Pins` adds how the user can accept it. */
export type PinDifference = Pick<Unapproved, "code" | "facts" | "changedFrom">;

/** Returns how a server differs from the approved one; undefined if it does not. */
export function serverDifference(
  identity: ServerIdentity,
  { lock, home }: PinState,
): PinDifference | undefined {
  const { name, isInLock, isCoveredByTrust, pinned: { source }, facts } = identity;
  const approved = memberOf(home, name);
  const locked = isInLock ? memberOf(lock, name) : approved;
  const changesOf = (was: LockEntry | undefined) => was ? uncoveredChanges(was, identity) : [];
  const changes = changesOf(approved);
  const lockChanges = changesOf(locked).filter((line) => !changes.includes(line));
  const lines = [
    ...withTitle(`${quoted(name)} has changed since it was approved`, changes),
    ...withTitle(`${quoted(name)} differs from ${LOCK_NAME}`, lockChanges),
  ];
  const ofOtherSource = [approved, locked].filter((was) =>
    was !== undefined && was.source !== source
  );
  if (ofOtherSource.length > 0) return { code: "NAME_CONFLICT", facts: [...lines, ...facts] };
  if (lines.length > 0 && approved !== undefined) {
    return { code: "APPROVAL_STALE", facts: [...lines, ...facts] };
  }
  // guard: lock-approves-nothing
  if (!isCoveredByTrust && (approved === undefined || locked === undefined)) {
    const missing = approved === undefined
      ? []
      : [`${quoted(name)} was approved, but is no longer in ${LOCK_NAME}`];
    return { code: "APPROVAL_REQUIRED", facts: [...missing, ...lines, ...facts] };
  }
  return lines.length > 0 ? { code: "APPROVAL_STALE", facts: [...lines, ...facts] } : undefined;
}

/** Returns the approved hash of a tool, and all pinned hashes that differ from its current hash. */
export function pinsOfTool(
  { identity: { name, isInLock }, tool }: Required<Omit<Pin, "isApproved">>,
  { lock, home }: Pick<PinState, "lock" | "home">,
): { readonly approved: string | undefined; readonly others: readonly string[] } {
  const hashIn = (entry: LockEntry | undefined) =>
    entry && memberOf(entry.tools, tool.definition.name);
  const approved = hashIn(memberOf(home, name));
  const locked = isInLock ? hashIn(memberOf(lock, name)) : undefined;
  const others = [...new Set([approved, locked])]
    .filter((hash): hash is string => hash !== undefined && hash !== tool.hash);
  return { approved, others };
}

/** The definitions with which a current definition is compared. */
interface DifferenceSource {
  readonly state: PinState;
  /** Returns the definition of a hash, if it is known. */
  readonly definition: (hash: string) => ToolDefinition | undefined;
  /** The definition that the server listed first; undefined if it is the current definition. */
  readonly first: ToolDefinition | undefined;
}

/** Returns how a tool differs from the pinned one; undefined if it does not. */
export function toolDifference(
  { identity, tool }: Omit<Pin, "isApproved">,
  from: DifferenceSource,
): PinDifference | undefined {
  // The definitions of a module are part of its code.
  if (tool === undefined || kindOf(identity.pinned).isSandboxed) return undefined;
  const { name } = identity;
  const { definition, hash } = tool;
  const { approved, others } = pinsOfTool({ identity, tool }, from.state);
  if (approved === undefined && from.first !== undefined) {
    const title = `${describe(name, definition)} has changed since it was first listed:`;
    const lines = definitionChanges(from.first, definition).map((line) => `  ${line}`);
    const facts = [title, `  definition: is ${hash}`, ...lines];
    return { code: "APPROVAL_STALE", facts, changedFrom: definitionHash(from.first) };
  }
  if (others.length === 0) return undefined;
  const { facts, hashes } = changesFrom(others, { identity, tool, approved, from });
  const [changedFrom] = hashes.length === others.length ? hashes : [];
  return { code: "APPROVAL_STALE", facts, ...withoutUndefined({ changedFrom }) };
}

/** Returns lines about the tools of a registry's module that differ from the pinned ones. */
export function moduleDifferences(
  identity: ServerIdentity,
  from: Pick<DifferenceSource, "state" | "definition">,
): readonly string[] {
  const { tools = [], pinned } = identity;
  if (!kindOf(pinned).isSandboxed) return [];
  return tools.flatMap((definition) => {
    const tool = { definition, hash: definitionHash(definition) };
    const { approved, others } = pinsOfTool({ identity, tool }, from.state);
    return changesFrom(others, { identity, tool, approved, from }).facts;
  });
}

/** Returns lines about the differences of a definition from pinned ones, and their known hashes. */
function changesFrom(
  others: readonly string[],
  { identity: { name }, tool: { definition, hash }, approved, from }:
    & Required<Omit<Pin, "isApproved">>
    & {
      readonly approved: string | undefined;
      readonly from: Pick<DifferenceSource, "definition">;
    },
): { readonly facts: readonly string[]; readonly hashes: readonly string[] } {
  // If PML knows only the hash of the earlier definition, every field of the current definition
  // counts as changed, so that the question shows all fields.
  const empty = { name: definition.name, inputSchema: {} };
  const facts: string[] = [];
  const hashes: string[] = [];
  for (const other of others) {
    const how = other === approved
      ? "has changed since it was approved"
      : `differs from ${LOCK_NAME}`;
    const was = from.definition(other);
    if (was !== undefined) hashes.push(other);
    facts.push(
      `${describe(name, definition)} ${how}:`,
      `  definition: was ${other}, is ${hash}`,
      ...definitionChanges(was ?? empty, definition).map((line) => `  ${line}`),
    );
  }
  return { facts, hashes };
}

function describe(server: string, { name }: ToolDefinition): string {
  if (name === INSTRUCTIONS) return `The text "instructions" of ${quoted(server)}`;
  if (isSkillPin(name)) {
    return `The skill ${quoted(name.slice("@skill(".length, -1), 200)} of ${quoted(server)}`;
  }
  return `The tool ${quoted(name)} of ${quoted(server)}`;
}

/** Returns a line for each difference of the lock from the current servers and the approvals. */
export function differencesOf(
  { lock, home }: PinState,
  identities: readonly ServerIdentity[],
): readonly string[] {
  const shared = identities.filter(({ isInLock }) => isInLock);
  const lines = shared.flatMap((identity) => {
    const { name, isCoveredByTrust, pinned } = sharedIdentity(identity);
    const [locked, approved] = [memberOf(lock, name), memberOf(home, name)];
    if (locked === undefined) {
      return approved === undefined ? [] : [`${name}: approved here, but not in ${LOCK_NAME}`];
    }
    // Unknown values are not compared: the version of a package that is not installed yet, and the
    // hash of a package, which the entry of a registry does not contain.
    const { version = locked.version, integrity = locked.integrity } = pinned;
    const known = { ...pinned, integrity };
    return [
      ...pinnedChanges(locked, isCoveredByTrust ? { ...known, version } : known).map((line) =>
        `${name}: ${line}`
      ),
      ...toolDifferences(name, { locked, approved }),
    ];
  });
  const names = new Set(identities.map(({ name }) => name));
  const pinsWithoutServer = Object.entries(lock).filter(([name, pin]) =>
    isOwnPin(pin) && !names.has(name)
  );
  return [
    ...lines,
    ...pinsWithoutServer.map(([name]) => `${name}: in ${LOCK_NAME}, but no file defines it`),
  ];
}

function toolDifferences(
  name: string,
  { locked, approved }: { readonly locked: LockEntry; readonly approved: LockEntry | undefined },
): readonly string[] {
  return Object.entries(approved?.tools ?? {}).flatMap(([tool, hash]) => {
    const other = memberOf(locked.tools, tool);
    if (other === hash) return [];
    const pins = other === undefined ? "does not pin it" : `pins ${other}`;
    return [`${name}:${tool}: ${hash} was approved here, but ${LOCK_NAME} ${pins}`];
  });
}

function withTitle(title: string, lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : [`${title}:`, ...lines.map((line) => `  ${line}`)];
}

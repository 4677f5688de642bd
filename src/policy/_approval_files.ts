/**
 * Stores the questions that wait for an answer at a terminal, and the approvals that the user gave
 * there. Each approval can be used once.
 *
 * @module
 */

import { join } from "node:path";
import { type ErrorCode, PmlError } from "../core/errors.ts";
import { quoted, withoutUndefined } from "../core/json.ts";
import {
  namesIn,
  privateFolder,
  readPrivate,
  syncName,
  unlessGone,
  type WarningLog,
  writePrivate,
} from "../io/private_files.ts";
import { openRegular } from "../io/regular_file.ts";
import { type Clock, retryWhileBusy } from "../io/waiting.ts";
import { withoutKeys } from "./_members.ts";
import { type APPROVAL_FOLDERS, sweepApprovals } from "./sweep_approvals.ts";
import { fullText } from "./_question.ts";
import { callDigestOf, digestOf, type Subject } from "./subject.ts";
import type { ToolSet } from "./tool_set.ts";

/**
 * The maximum number of approvals of one actor that can wait, and of the characters of their texts.
 * The oldest is removed first. The limits exist because each listing reads all files.
 */
const [MOST_WAITING, MOST_WAITING_TEXT] = [50, 16_000_000];

/** A question that waits for the user, with everything that must be shown. */
export interface PendingApproval {
  /** The digest of the question's subjects. */
  readonly id: string;
  readonly subjects: readonly Subject[];
  /** The full question, safe to print. */
  readonly text: string;
  /** The time of the question, in milliseconds since 1970. */
  readonly asked: number;
  readonly expires: number;
  /** Whether the user may answer "Always". */
  readonly always: boolean;
  /** Whether the user may answer "Never". */
  readonly never?: boolean;
  /** The nonce of the session that may keep the answer; missing if no session may keep it. */
  readonly session?: string;
  /** The sets of tools that one answer may cover. */
  readonly sets?: readonly ToolSet[];
  /** For each call, the names of the members that are its only difference from an earlier call. */
  readonly differing?: readonly (readonly string[])[];
  /** The error code of the call while the question waits; APPROVAL_REQUIRED if it is missing. */
  readonly otherwise?: ErrorCode;
  /** Whether the same question already waited when this one was written. */
  readonly isRepeated?: boolean;
}

/** The lifetime of approvals, and the clock that measures it. */
export interface ApprovalLifetime {
  /** How long after its question an approval can be given and used, in milliseconds. */
  readonly ttl: number;
  /** The time, in milliseconds since 1970; by default the system's time. */
  readonly clock?: Clock;
}

/** The state of an approval: pending (waits for the user) or approved (waits for its call). */
type ApprovalState = typeof APPROVAL_FOLDERS[number];

type Times = Pick<PendingApproval, "asked" | "expires">;

/** An approval that was given at a terminal. */
export interface GrantedApproval extends Times {
  /** The nonce of the session that keeps the answer; missing if it covers one call. */
  readonly session?: string | undefined;
}

/** A space, which is valid between JSON tokens. */
const BLANK = 0x20;
const ID_FILE = /^([0-9a-f]{64})\.json$/;

/** The folders `pending` and `approved` in a PML home. */
export class ApprovalFiles {
  readonly #home: string;
  readonly #log: WarningLog;
  readonly #ttl: number;
  readonly #clock: Clock;

  /** Takes the PML home; opens nothing yet. Files that cannot be read approve nothing. */
  constructor(home: string, log: WarningLog, { ttl, clock = Date }: ApprovalLifetime) {
    this.#home = home;
    this.#log = log;
    this.#ttl = ttl;
    this.#clock = clock;
  }

  /** Writes a question that waits for an answer. Returns it. */
  async write(
    id: string,
    { subjects, always, never = false, session, otherwise, sets = [], differing = [] }: Pick<
      PendingApproval,
      "subjects" | "always" | "never" | "session" | "otherwise" | "sets" | "differing"
    >,
  ): Promise<PendingApproval> {
    const waiting = await this.list();
    const others = waiting.filter((other) =>
      other.id !== id && haveSameActor(other.subjects, subjects)
    );
    const text = fullText(subjects, differing);
    let size = text.length;
    const excess = others.toReversed().filter((other, index) => {
      size += other.text.length;
      return index >= MOST_WAITING - 1 || size > MOST_WAITING_TEXT;
    });
    // guard: waiting-size
    await Promise.all(excess.map((oldest) => this.refuse(oldest.id)));
    const asked = this.#clock.now();
    const expires = asked + this.#ttl;
    const offers = { always, never, sets, ...withoutUndefined({ session, otherwise }) };
    const content = { subjects, ...offers, differing, asked, expires };
    await writePrivate(this.#path("pending", id), content);
    // Only the newest question about a call waits. An earlier question about the same call has
    // another digest because the tool's definition or the decision of the rules has changed.
    const callDigest = callDigestOf(subjects);
    const earlier = others.filter((other) => callDigestOf(other.subjects) === callDigest);
    await Promise.all(earlier.map((other) => this.withdraw(other.id)));
    const isRepeated = waiting.some((other) => other.id === id);
    return { ...content, id, text, ...isRepeated && { isRepeated } };
  }

  /** Removes expired approvals. */
  sweep(): void {
    sweepApprovals(this.#home, this.#clock.now(), this.#ttl);
  }

  /** Returns the pending questions, the oldest first. Removes expired ones. */
  async list(): Promise<PendingApproval[]> {
    this.sweep();
    const names = await namesIn(join(this.#home, "pending"));
    const waiting = names.flatMap((name) => {
      const [, id] = ID_FILE.exec(name) ?? [];
      return id === undefined ? [] : this.#readPending(id) ?? [];
    });
    return waiting.sort((one, other) => one.asked - other.asked);
  }

  /** Approves a question. Throws APPROVAL_STALE if it is no longer pending. */
  async grant(id: string, isForSession = false): Promise<void> {
    privateFolder(join(this.#home, "approved"));
    const pending = this.#readPending(id);
    const approvedPath = this.#path("approved", id);
    const isGranted = pending !== undefined &&
      await hasSucceeded(
        retryWhileBusy(() => Deno.rename(this.#path("pending", id), approvedPath)),
      );
    if (!isGranted) throw staleError(id);
    const { asked, expires, session } = pending;
    keepOnlyTimes(approvedPath, { asked, expires, ...isForSession && { session } });
    await syncName(approvedPath);
  }

  /** Returns whether a question was approved, and no call has used the approval. */
  isGranted(id: string): boolean {
    const parse = (json: unknown) => json as GrantedApproval;
    return this.#read("approved", { id, parse }) !== undefined;
  }

  /** Approves a question without some keys of `_meta`. Throws the same errors as `grant`. */
  async grantWithout(id: string, keys: readonly string[]): Promise<void> {
    const pending = this.#readPending(id);
    // Only one caller can take the question.
    if (pending === undefined || !await this.withdraw(id)) throw staleError(id);
    const subjects = pending.subjects.map((subject) => withoutKeys(subject, keys));
    const without = await this.write(digestOf(subjects), { subjects, always: false });
    await this.grant(without.id);
  }

  /**
   * Removes a pending question, or an approval that was given but not used yet. Returns whether
   * there was one.
   */
  async refuse(id: string): Promise<boolean> {
    const wasPending = await this.withdraw(id);
    // guard: approval-refused
    return await this.#removeApproved(id) || wasPending;
  }

  /** Removes a pending question, and no approval. Returns whether there was one. */
  async withdraw(id: string): Promise<boolean> {
    return await hasSucceeded(retryWhileBusy(() => Deno.remove(this.#path("pending", id))));
  }

  /** Removes the pending questions about the same calls, also those under other rules. */
  async withdrawAnswered(subjects: readonly Subject[]): Promise<void> {
    const callDigest = callDigestOf(subjects);
    for (const { id, subjects } of await this.list()) {
      if (callDigestOf(subjects) === callDigest) await this.withdraw(id);
    }
  }

  /**
   * Uses up an approval. Returns it to only one caller, because only one can remove the file.
   */
  async take(id: string): Promise<GrantedApproval | undefined> {
    const approved = this.#read("approved", { id, parse: (json) => json as GrantedApproval });
    return approved !== undefined && await this.#removeApproved(id) ? approved : undefined;
  }

  async #removeApproved(id: string): Promise<boolean> {
    const path = this.#path("approved", id);
    if (!await hasSucceeded(retryWhileBusy(() => Deno.remove(path)))) return false;
    // After a power failure, the removed approval must not be there again.
    await syncName(path);
    return true;
  }

  #readPending(id: string): PendingApproval | undefined {
    return this.#read("pending", { id, parse: (json) => parsePending(json, id) });
  }

  /** Reads the file of a question or an approval; undefined if it is missing or expired. */
  #read<T extends Times>(
    state: ApprovalState,
    { id, parse }: { readonly id: string; readonly parse: (json: unknown) => T },
  ): T | undefined {
    const stored = readPrivate(this.#path(state, id), parse, this.#log);
    const now = this.#clock.now();
    // guard: waiting-age
    return stored && stored.asked <= now && now < stored.expires ? stored : undefined;
  }

  /** Returns the path of a file. The id is checked because it comes from a command line. */
  #path(state: ApprovalState, id: string): string {
    // guard: approval-name
    if (!/^[0-9a-f]{64}$/.test(id)) throw staleError(id);
    return join(this.#home, state, `${id}.json`);
  }
}

function haveSameActor([one]: readonly Subject[], [other]: readonly Subject[]): boolean {
  // guard: waiting-actor
  return one?.actor === other?.actor;
}

/** Parses a pending question. PML wrote the file, so only its digest is compared with its name. */
function parsePending(json: unknown, id: string): PendingApproval {
  const stored = json as Omit<PendingApproval, "id" | "text">;
  // guard: waiting-approval
  if (digestOf(stored.subjects) !== id) {
    throw new TypeError("its name does not match the digest of its calls");
  }
  return { ...stored, id, text: fullText(stored.subjects, stored.differing) };
}

/**
 * Removes all but the times and the session from the file of an approval. Its subjects are no
 * longer needed, because the file's name is their digest. The file is written in place: a new file
 * could restore an approval that a call used up and removed in the meantime.
 */
function keepOnlyTimes(path: string, { asked, expires, session }: GrantedApproval): void {
  try {
    using file = openRegular(path, { read: true, write: true });
    const times = new TextEncoder().encode(JSON.stringify({ asked, expires, session }));
    const bytes = new Uint8Array(Math.max(file.statSync().size, times.length)).fill(BLANK);
    bytes.set(times);
    for (let offset = 0; offset < bytes.length;) offset += file.writeSync(bytes.subarray(offset));
    file.truncateSync(times.length);
    file.syncSync();
  } catch (error) {
    unlessGone(error);
  }
}

/** Returns whether a change of a file succeeded; false if the file was gone. */
async function hasSucceeded(change: Promise<void>): Promise<boolean> {
  return await change.then(() => true, unlessGone) === true;
}

function staleError(id: string): PmlError {
  return new PmlError(
    "APPROVAL_STALE",
    `Cannot approve ${quoted(id)}: no such approval is pending`,
    {
      hint: "It expired or was answered; make the call again",
    },
  );
}

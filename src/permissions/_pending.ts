/**
 * Approvals in the PML home that wait for a person at a terminal. Each can be used once.
 *
 * @module
 */

import { join } from "node:path";
import { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import {
  namesIn,
  privateFolder,
  readPrivate,
  syncName,
  unlessGone,
  writePrivate,
} from "../io/private_files.ts";
import { fullText } from "./_question.ts";
import { digestOf, type Subject } from "./subject.ts";

/** The most approvals that can wait. The oldest is removed first. */
const MOST_WAITING = 50;

/** A question that waits for a person, with everything that must be shown. */
export interface PendingApproval {
  /** The digest of the question's subjects. */
  readonly id: string;
  readonly subjects: readonly Subject[];
  /** The full question, safe to print. */
  readonly text: string;
  /** The time of the question, in milliseconds since 1970. */
  readonly asked: number;
  readonly expires: number;
  /** Whether the person may answer "Always". */
  readonly always: boolean;
}

/** The options of `PendingFiles`. */
export interface PendingOptions {
  readonly warn: (message: string) => void;
  readonly now: () => number;
  readonly ttl: number;
}

/** The state of an approval: it waits for the person, or it was given and waits for its call. */
type ApprovalState = "pending" | "approved";

/** The folders `pending` and `approved` in a PML home. */
export class PendingFiles {
  readonly #home: string;
  readonly #options: PendingOptions;

  /** Takes the folder of the home; opens nothing yet. */
  constructor(home: string, options: PendingOptions) {
    this.#home = home;
    this.#options = options;
  }

  /** Writes a question that waits for an answer. Returns it. */
  async leave(
    id: string,
    { subjects, always }: Pick<PendingApproval, "subjects" | "always">,
  ): Promise<PendingApproval> {
    const { now, ttl } = this.#options;
    const others = (await this.list()).filter((other) => other.id !== id);
    for (const oldest of others.slice(0, 1 - MOST_WAITING)) await this.refuse(oldest.id);
    const kept = { subjects, always, asked: now(), expires: now() + ttl };
    await writePrivate(this.#path("pending", id), kept);
    return { ...kept, id, text: fullText(subjects) };
  }

  /** Returns the questions that wait, the oldest first. Removes those that are too old. */
  async list(): Promise<PendingApproval[]> {
    await this.#live("approved");
    return (await this.#live("pending")).sort((one, other) => one.asked - other.asked);
  }

  /** Approves a question. Throws APPROVAL_STALE if it no longer waits. */
  async grant(id: string): Promise<void> {
    privateFolder(join(this.#home, "approved"));
    const asked = this.#read("pending", id);
    const approved = this.#path("approved", id);
    const given = asked !== undefined &&
      await succeeded(Deno.rename(this.#path("pending", id), approved));
    if (!given) throw stale(id);
    await syncName(approved);
  }

  /**
   * Removes a question, or an approval that was given elsewhere and not used yet. Returns whether
   * there was one.
   */
  async refuse(id: string): Promise<boolean> {
    const waited = await succeeded(Deno.remove(this.#path("pending", id)));
    return await this.#removed(id) || waited;
  }

  /**
   * Uses up an approval. Returns true only for one caller, because only one can remove the file.
   */
  async take(id: string): Promise<boolean> {
    return this.#read("approved", id) !== undefined && await this.#removed(id);
  }

  async #removed(id: string): Promise<boolean> {
    const path = this.#path("approved", id);
    if (!await succeeded(Deno.remove(path))) return false;
    // A machine that loses its power now must not give it once more.
    await syncName(path);
    return true;
  }

  async #live(state: ApprovalState): Promise<PendingApproval[]> {
    const found: PendingApproval[] = [];
    const folder = join(this.#home, state);
    for (const name of await namesIn(folder)) {
      const [, id] = /^([0-9a-f]{64})\.json$/.exec(name) ?? [];
      const kept = id && this.#read(state, id);
      if (kept) found.push(kept);
      // A file with another name is being written by another process, or that process was killed.
      else await this.#removeOld(join(folder, name));
    }
    return found;
  }

  async #removeOld(path: string): Promise<void> {
    const found = await Deno.lstat(path).catch(unlessGone);
    const changed = found?.mtime?.getTime() ?? Infinity;
    if (changed + this.#options.ttl < this.#options.now()) await succeeded(Deno.remove(path));
  }

  /** Reads an approval if it is still valid. */
  #read(state: ApprovalState, id: string): PendingApproval | undefined {
    const { warn, now } = this.#options;
    const kept = readPrivate(this.#path(state, id), { warn, parse: (json) => parsed(json, id) });
    return kept && kept.asked <= now() && now() < kept.expires ? kept : undefined;
  }

  /** Returns the path of a file. The id is checked because it comes from a command line. */
  #path(state: ApprovalState, id: string): string {
    if (!/^[0-9a-f]{64}$/.test(id)) throw stale(id);
    return join(this.#home, state, `${id}.json`);
  }
}

/** Parses an approval. PML wrote the file, so only its digest is compared with its name. */
function parsed(json: unknown, id: string): PendingApproval {
  const kept = json as Omit<PendingApproval, "id" | "text">;
  if (digestOf(kept.subjects) !== id) throw new TypeError("its name stands for another call");
  return { ...kept, id, text: fullText(kept.subjects) };
}

/** Returns whether the file still existed. Of several callers, one succeeds. */
async function succeeded(change: Promise<void>): Promise<boolean> {
  return await change.then(() => true, unlessGone) === true;
}

function stale(id: string): PmlError {
  return new PmlError("APPROVAL_STALE", `Cannot approve ${quoted(id)}: no such approval waits`, {
    hint: "It expired or was answered; make the call again",
  });
}

/**
 * Approvals that wait in the PML home for a person at a terminal, each used up once.
 *
 * @module
 */

import { join } from "node:path";
import { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import {
  privateFolder,
  readPrivate,
  syncName,
  unlessGone,
  writePrivate,
} from "../io/private_files.ts";
import { fullText } from "./_question.ts";
import { digestOf, type Subject } from "./subject.ts";

/** How many can wait; the oldest goes first. */
const MOST_WAITING = 50;

/** What waits for a person, with everything that has to be shown. */
export interface PendingApproval {
  /** The digest of what is asked about. */
  readonly id: string;
  readonly subjects: readonly Subject[];
  /** The question in full, safe to print. */
  readonly text: string;
  /** In milliseconds since 1970. */
  readonly asked: number;
  readonly expires: number;
}

/** What the files need beside their folder. */
export interface PendingOptions {
  readonly warn: (message: string) => void;
  readonly now: () => number;
  readonly ttl: number;
}

/** Where an approval stands: it waits, or it was given and waits for its call. */
type State = "pending" | "approved";

/** The folders `pending` and `approved` of a PML home. */
export class PendingFiles {
  readonly #home: string;
  readonly #options: PendingOptions;

  /** Makes the view of a home; nothing is opened before it is used. */
  constructor(home: string, options: PendingOptions) {
    this.#home = home;
    this.#options = options;
  }

  /** Writes what waits for an answer. */
  async leave(id: string, subjects: readonly Subject[]): Promise<PendingApproval> {
    const { now, ttl } = this.#options;
    const others = (await this.list()).filter((other) => other.id !== id);
    for (const oldest of others.slice(0, 1 - MOST_WAITING)) await this.refuse(oldest.id);
    const kept = { subjects, asked: now(), expires: now() + ttl };
    await writePrivate(this.#path("pending", id), kept);
    return { ...kept, id, text: fullText(subjects) };
  }

  /** Lists what waits, the oldest first; what is too old is removed. */
  async list(): Promise<PendingApproval[]> {
    await this.#live("approved");
    return (await this.#live("pending")).sort((one, other) => one.asked - other.asked);
  }

  /** Moves what waits to what was given. */
  async grant(id: string): Promise<void> {
    privateFolder(join(this.#home, "approved"));
    const asked = this.#read("pending", id);
    const approved = this.#path("approved", id);
    const given = asked !== undefined &&
      await succeeded(Deno.rename(this.#path("pending", id), approved));
    if (!given) throw stale(id);
    await syncName(approved);
  }

  /** Removes what waits. */
  async refuse(id: string): Promise<void> {
    await succeeded(Deno.remove(this.#path("pending", id)));
  }

  /** Uses up what was given: a file can be removed once, whoever tries. */
  async take(id: string): Promise<boolean> {
    const path = this.#path("approved", id);
    const given = this.#read("approved", id);
    if (given === undefined || !await succeeded(Deno.remove(path))) return false;
    // A machine that loses its power now must not give it once more.
    await syncName(path);
    return true;
  }

  async #live(state: State): Promise<PendingApproval[]> {
    const found: PendingApproval[] = [];
    const folder = join(this.#home, state);
    for (const { name } of await Array.fromAsync(Deno.readDir(folder)).catch(unlessGone) ?? []) {
      const [, id] = /^([0-9a-f]{64})\.json$/.exec(name) ?? [];
      const kept = id && this.#read(state, id);
      if (kept) found.push(kept);
      // Anything else is being written by another process, or was when that was killed.
      else await this.#removeOld(join(folder, name));
    }
    return found;
  }

  async #removeOld(path: string): Promise<void> {
    const found = await Deno.lstat(path).catch(unlessGone);
    const changed = found?.mtime?.getTime() ?? Infinity;
    if (changed + this.#options.ttl < this.#options.now()) await succeeded(Deno.remove(path));
  }

  /** Reads one that can still be used. */
  #read(state: State, id: string): PendingApproval | undefined {
    const { warn, now } = this.#options;
    const kept = readPrivate(this.#path(state, id), { warn, parse: (json) => parsed(json, id) });
    return kept && kept.asked <= now() && now() < kept.expires ? kept : undefined;
  }

  /** An id comes from a command line, and becomes the name of a file. */
  #path(state: State, id: string): string {
    if (!/^[0-9a-f]{64}$/.test(id)) throw stale(id);
    return join(this.#home, state, `${id}.json`);
  }
}

/** What PML has written is not looked at again, but it must be what its name stands for. */
function parsed(json: unknown, id: string): PendingApproval {
  const kept = json as Pick<PendingApproval, "subjects" | "asked" | "expires">;
  if (digestOf(kept.subjects) !== id) throw new TypeError("its name stands for another call");
  return { ...kept, id, text: fullText(kept.subjects) };
}

/** Tells whether the file was still there: of several that try, one succeeds. */
async function succeeded(change: Promise<void>): Promise<boolean> {
  return await change.then(() => true, unlessGone) === true;
}

function stale(id: string): PmlError {
  return new PmlError("APPROVAL_STALE", `Cannot approve ${quoted(id)}: nothing waits under it`, {
    hint: "It expired, was answered, or never was; make the call again",
  });
}

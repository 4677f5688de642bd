/**
 * The answers "For this session": each lets one tool run without a question, for one connection of a
 * client, until something that the answer depended on changes.
 *
 * @module
 */

import { randomBytes } from "node:crypto";
import { messageOf, PmlError } from "../core/errors.ts";
import { sha256 } from "../core/hash.ts";
import { canonical, type Json, textOf, visible } from "../core/json.ts";
import type { WarningLog } from "../io/private_files.ts";
import type { Clock } from "../io/waiting.ts";
import type { AlwaysRules } from "../policy/always_rule.ts";
import { definitionHash } from "../policy/integrity.ts";
import type { Policy } from "../policy/policy.ts";
import { isRisky } from "../policy/risky.ts";
import {
  hasSessionAnswer,
  removeSessionAnswer,
  writeSessionAnswer,
} from "../policy/session_files.ts";
import type { ResolvedCall } from "../servers/server.ts";

/** The collaborators of `SessionAnswers`. */
export interface SessionAnswerParts {
  readonly policy: Policy;
  readonly always: Pick<AlwaysRules, "offered">;
  readonly log: WarningLog;
  /** The time, in milliseconds since 1970; that of the system by default. */
  readonly clock?: Clock;
}

/** The facts that an answer depends on. The configuration and the trust are compared as objects. */
interface Basis {
  readonly config: object;
  readonly trust: object;
  /** The hash of the tool's definition, and that of its server's identity. */
  readonly hashes: string;
}

interface KeptAnswer {
  readonly nonce: string;
  readonly at: number;
  readonly basis: Basis;
}

/** How long an answer is valid, in milliseconds. */
const LASTS_MS = 12 * 3_600_000;
/** The maximum number of answers of one connection. */
const ANSWERS_MAX = 500;

/** The answers of all connections of this process. */
export class SessionAnswers implements Disposable {
  readonly #parts: SessionAnswerParts;
  readonly #clock: Clock;
  /** The answers of each connection, by the calls that they cover and the rule that asked. */
  readonly #answers = new Map<AbortSignal, Map<string, KeptAnswer>>();

  /** Takes the collaborators. Answers end when the configuration changes. */
  constructor(parts: SessionAnswerParts) {
    this.#parts = parts;
    this.#clock = parts.clock ?? Date;
    parts.policy.onChange(() => this.#dropChanged());
  }

  /** Returns the rule of the calls that an answer would cover; undefined if none is offered. */
  async offered(call: ResolvedCall): Promise<string | undefined> {
    const { policy: { now: { config } }, always } = this.#parts;
    const { client: { connection }, method, members, actor } = call;
    if (connection === undefined || connection.aborted || method !== undefined) return undefined;
    // guard: session-members
    if (members !== undefined) return undefined;
    // guard: session-identity
    if (actor !== "local" || config.narrowing?.identity !== undefined) return undefined;
    // guard: session-destructive
    if (isRisky(call.id, await call.definition())) return undefined;
    return always.offered(call);
  }

  /** Returns whether an answer covers a call. An answer that is no longer valid is removed. */
  async covers(call: ResolvedCall): Promise<boolean> {
    const { connection } = call.client;
    const answers = connection && this.#answers.get(connection);
    if (answers === undefined) return false;
    const rule = await this.offered(call);
    const key = rule && keyOf(rule, call);
    const answer = key && answers.get(key);
    if (!answer) return false;
    const { hashes } = await this.#basisOf(call);
    if (this.#isValid(answer, hashes)) return true;
    this.#drop(answers, key);
    return false;
  }

  /** Keeps the answer that the user gave to a question about a call. Throws if it cannot. */
  async keep(call: ResolvedCall): Promise<void> {
    const { connection, info } = call.client;
    const rule = await this.offered(call);
    if (connection === undefined || rule === undefined) throw notKept("it is no longer offered");
    const answers = this.#answersOf(connection);
    if (answers.size >= ANSWERS_MAX) throw notKept(`the client has ${ANSWERS_MAX} of them`);
    const at = this.#clock.now();
    const nonce = randomBytes(32).toString("hex");
    const { config, loaded: { environment: { home } } } = this.#parts.policy.now;
    const basis = await this.#basisOf(call);
    await writeSessionAnswer(home, nonce, {
      version: 1,
      pid: Deno.pid,
      tool: call.id,
      rule,
      client: visible(textOf(info?.name), 100),
      workspace: config.workspace,
      at,
      expires: at + LASTS_MS,
    });
    const answer = { nonce, at, basis };
    // The connection or the configuration may be another one after the file was written.
    if (connection.aborted || !this.#isOfPresent(basis)) return this.#remove(answer);
    const key = keyOf(rule, call);
    this.#drop(answers, key);
    answers.set(key, answer);
  }

  /** Ends all answers. */
  [Symbol.dispose](): void {
    for (const connection of [...this.#answers.keys()]) this.#end(connection);
  }

  #answersOf(connection: AbortSignal): Map<string, KeptAnswer> {
    const present = this.#answers.get(connection);
    if (present !== undefined) return present;
    const answers = new Map<string, KeptAnswer>();
    this.#answers.set(connection, answers);
    connection.addEventListener("abort", () => this.#end(connection), { once: true });
    return answers;
  }

  #end(connection: AbortSignal): void {
    const answers = this.#answers.get(connection);
    this.#answers.delete(connection);
    for (const answer of answers?.values() ?? []) this.#remove(answer);
  }

  /** Ends the answers that were given with another configuration or other trust. */
  #dropChanged(): void {
    for (const answers of this.#answers.values()) {
      for (const [key, answer] of [...answers]) {
        // guard: session-config
        if (!this.#isOfPresent(answer.basis)) this.#drop(answers, key);
      }
    }
  }

  #isValid({ nonce, at, basis }: KeptAnswer, hashes: string): boolean {
    const age = this.#clock.now() - at;
    // guard: session-age
    if (age < 0 || age >= LASTS_MS) return false;
    // guard: session-basis
    if (basis.hashes !== hashes) return false;
    // guard: session-revoked
    return hasSessionAnswer(this.#home, nonce);
  }

  async #basisOf(call: ResolvedCall): Promise<Basis> {
    const { loaded: config, trust } = this.#parts.policy.now;
    const [definition, identity] = await Promise.all([call.definition(), call.server.identity()]);
    const server = sha256(canonical((identity?.pinned ?? null) as unknown as Json));
    return { config, trust, hashes: `${definitionHash(definition)} ${server}` };
  }

  /** Returns whether a basis has the present configuration and trust. */
  #isOfPresent({ config, trust }: Basis): boolean {
    const { now } = this.#parts.policy;
    return config === now.loaded && trust === now.trust;
  }

  #drop(answers: Map<string, KeptAnswer>, key: string): void {
    const answer = answers.get(key);
    answers.delete(key);
    if (answer !== undefined) this.#remove(answer);
  }

  #remove({ nonce }: KeptAnswer): void {
    try {
      removeSessionAnswer(this.#home, nonce);
    } catch (error) {
      this.#parts.log.warn(`Cannot remove an answer for a session: ${messageOf(error)}`);
    }
  }

  get #home(): string {
    return this.#parts.policy.now.loaded.environment.home;
  }
}

/** Returns a text for the calls that an answer covers, and for the rule that asks about them. */
function keyOf(rule: string, { verdict }: ResolvedCall): string {
  return JSON.stringify([rule, verdict?.rule, verdict?.source]);
}

function notKept(why: string): PmlError {
  return new PmlError("APPROVAL_STALE", `Cannot keep the answer for this session: ${why}`, {
    hint: "The call runs once; the next one asks again",
  });
}

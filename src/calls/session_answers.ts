/**
 * The answers "For this session". Each answer allows one tool for one connection of a client, for at
 * most 12 hours, and until the configuration, the trust, the tool's definition or its server changes.
 *
 * @module
 */

import { randomHex } from "../core/random.ts";
import { messageOf, PmlError } from "../core/errors.ts";
import { sha256 } from "../core/hash.ts";
import { canonicalJson, type Json, textOf, visible } from "../core/json.ts";
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
  readonly always: Pick<AlwaysRules, "offeredRule">;
  readonly log: WarningLog;
  /** Returns the time in milliseconds since 1970; the system's clock by default. */
  readonly clock?: Clock;
}

/** The facts that an answer depends on. The configuration and the trust are compared by identity. */
interface Basis {
  readonly config: object;
  readonly trust: object;
  /** The hashes of the tool's definition and of its server's identity. */
  readonly hashes: string;
}

/** A valid answer. Removing its file ends the answer, also from another process. */
interface SessionAnswer {
  /** The name of the answer's file. */
  readonly nonce: string;
  /** When the user answered, in milliseconds since 1970. */
  readonly answeredAt: number;
  readonly basis: Basis;
}

/** How long an answer is valid, in milliseconds. */
const VALID_MS = 12 * 3_600_000;
/** The maximum number of answers of one connection. */
const ANSWERS_MAX = 500;

/** The answers of all connections of this process. */
export class SessionAnswers implements Disposable {
  readonly #parts: SessionAnswerParts;
  readonly #clock: Clock;
  /** The answers of each connection. The key is the covered rule and the rule that asked. */
  readonly #answers = new Map<AbortSignal, Map<string, SessionAnswer>>();

  /** Takes the collaborators. Removes answers when the configuration changes. */
  constructor(parts: SessionAnswerParts) {
    this.#parts = parts;
    this.#clock = parts.clock ?? Date;
    parts.policy.onChange(() => this.#dropChanged());
  }

  /**
   * Returns the rule that an answer would allow; undefined if "For this session" is not offered.
   */
  async ruleToOffer(call: ResolvedCall): Promise<string | undefined> {
    const { policy: { now: { config } }, always } = this.#parts;
    const { client: { connection }, method, members, actor } = call;
    if (connection === undefined || connection.aborted || method !== undefined) return undefined;
    // guard: session-members
    if (members !== undefined) return undefined;
    // guard: session-identity
    if (actor !== "local" || config.restrictions?.identity !== undefined) return undefined;
    // guard: session-destructive
    if (isRisky(call.id, await call.definition())) return undefined;
    return always.offeredRule(call);
  }

  /** Returns whether an answer covers a call. An answer that is no longer valid is removed. */
  async covers(call: ResolvedCall): Promise<boolean> {
    const { connection } = call.client;
    const answers = connection && this.#answers.get(connection);
    if (answers === undefined) return false;
    const rule = await this.ruleToOffer(call);
    const key = rule && keyOf(rule, call);
    const answer = key && answers.get(key);
    if (!answer) return false;
    const { hashes } = await this.#basisOf(call);
    if (this.#isValid(answer, hashes)) return true;
    this.#drop(answers, key);
    return false;
  }

  /** Keeps the user's answer to a question about a call. Throws APPROVAL_STALE if it cannot. */
  async keep(call: ResolvedCall): Promise<void> {
    const { connection, info } = call.client;
    const rule = await this.ruleToOffer(call);
    if (connection === undefined || rule === undefined) throw keepError("it is no longer offered");
    const answers = this.#answersOf(connection);
    if (answers.size >= ANSWERS_MAX) throw keepError(`the client has ${ANSWERS_MAX} of them`);
    const at = this.#clock.now();
    const nonce = randomHex(32);
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
      expires: at + VALID_MS,
    });
    const answer = { nonce, answeredAt: at, basis };
    // The client may have disconnected, or the configuration may have changed, during the write.
    if (connection.aborted || !this.#isCurrent(basis)) return this.#remove(answer);
    const key = keyOf(rule, call);
    this.#drop(answers, key);
    answers.set(key, answer);
  }

  /** Ends all answers. */
  [Symbol.dispose](): void {
    for (const connection of [...this.#answers.keys()]) this.#end(connection);
  }

  #answersOf(connection: AbortSignal): Map<string, SessionAnswer> {
    const existing = this.#answers.get(connection);
    if (existing !== undefined) return existing;
    const answers = new Map<string, SessionAnswer>();
    this.#answers.set(connection, answers);
    connection.addEventListener("abort", () => this.#end(connection), { once: true });
    return answers;
  }

  #end(connection: AbortSignal): void {
    const answers = this.#answers.get(connection);
    this.#answers.delete(connection);
    for (const answer of answers?.values() ?? []) this.#remove(answer);
  }

  /** Removes the answers from before a change of the configuration or of the trust. */
  #dropChanged(): void {
    for (const answers of this.#answers.values()) {
      for (const [key, answer] of [...answers]) {
        // guard: session-config
        if (!this.#isCurrent(answer.basis)) this.#drop(answers, key);
      }
    }
  }

  #isValid({ nonce, answeredAt, basis }: SessionAnswer, hashes: string): boolean {
    const age = this.#clock.now() - answeredAt;
    // guard: session-age
    if (age < 0 || age >= VALID_MS) return false;
    // guard: session-basis
    if (basis.hashes !== hashes) return false;
    // guard: session-revoked
    return hasSessionAnswer(this.#home, nonce);
  }

  async #basisOf(call: ResolvedCall): Promise<Basis> {
    const { loaded: config, trust } = this.#parts.policy.now;
    const [definition, identity] = await Promise.all([call.definition(), call.server.identity()]);
    const server = sha256(canonicalJson((identity?.pinned ?? null) as unknown as Json));
    return { config, trust, hashes: `${definitionHash(definition)} ${server}` };
  }

  /** Returns whether a basis has the current configuration and trust. */
  #isCurrent({ config, trust }: Basis): boolean {
    const { now } = this.#parts.policy;
    return config === now.loaded && trust === now.trust;
  }

  #drop(answers: Map<string, SessionAnswer>, key: string): void {
    const answer = answers.get(key);
    answers.delete(key);
    if (answer !== undefined) this.#remove(answer);
  }

  #remove({ nonce }: SessionAnswer): void {
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

/** Returns the key of an answer: the rule that it allows, and the rule that asked. */
function keyOf(rule: string, { verdict }: ResolvedCall): string {
  return JSON.stringify([rule, verdict?.rule, verdict?.source]);
}

function keepError(why: string): PmlError {
  return new PmlError("APPROVAL_STALE", `Cannot keep the answer for this session: ${why}`, {
    hint: "The call runs once; the next one asks again",
  });
}

/**
 * Questions that several requests of one party wait for at the same time: the person is asked once,
 * and each request gets the answer.
 *
 * @module
 */

import type { Question, Reply } from "../core/call.ts";
import { onAbort } from "../io/waiting.ts";
import type { Party } from "./_clients.ts";

/** The longest time, in milliseconds, that a request waits for the answer to another one. */
const WAIT_MAX = 60_000;

/** A question that was put to a client. */
interface OpenQuestion {
  readonly handle: string;
  /** Resolves to the answer; to undefined if none came. */
  readonly reply: PromiseWithResolvers<Reply | undefined>;
  readonly timer: ReturnType<typeof setTimeout>;
}

/** The questions of all parties that one answer covers. */
export class SharedQuestions implements Disposable {
  readonly #open = new WeakMap<Party, Map<string, OpenQuestion>>();
  readonly #parties = new Map<string, { readonly party: Party; readonly shared: string }>();

  /**
   * Waits while another request of the party asks the same question, and returns its answer.
   * Returns undefined if this request has to ask: others wait for it until `end()` is called.
   * Rejects if the signal aborts.
   */
  async replyTo(
    { handle, shared }: Question,
    { party, signal }: { readonly party: Party; readonly signal: AbortSignal },
  ): Promise<Reply | undefined> {
    if (shared === undefined) return undefined;
    for (;;) {
      const open = this.#open.get(party)?.get(shared);
      if (open === undefined) {
        // No other request can begin between the look and this.
        this.#begin({ handle, shared, party });
        return undefined;
      }
      const { promise, reject } = Promise.withResolvers<never>();
      using _ = onAbort(signal, () => reject(signal.reason));
      const reply = await Promise.race([open.reply.promise, promise]);
      // A rule that "Always" adds is added by the request that asked.
      if (reply !== undefined) return reply === "Always" ? "Yes" : reply;
    }
  }

  /** Ends a question: all requests that wait for it get its answer. */
  end(handle: string, reply?: Reply): void {
    const { party, shared } = this.#parties.get(handle) ?? {};
    this.#parties.delete(handle);
    const ofParty = party && this.#open.get(party);
    const open = shared === undefined ? undefined : ofParty?.get(shared);
    if (open === undefined || shared === undefined) return;
    ofParty?.delete(shared);
    clearTimeout(open.timer);
    open.reply.resolve(reply);
  }

  /** Ends all questions without an answer. */
  [Symbol.dispose](): void {
    for (const handle of [...this.#parties.keys()]) this.end(handle);
  }

  #begin(
    { handle, shared, party }: Record<"handle" | "shared", string> & { readonly party: Party },
  ): void {
    const ofParty = this.#open.get(party) ?? new Map<string, OpenQuestion>();
    this.#open.set(party, ofParty);
    const timer = setTimeout(() => this.end(handle), WAIT_MAX);
    Deno.unrefTimer(timer);
    ofParty.set(shared, { handle, reply: Promise.withResolvers(), timer });
    this.#parties.set(handle, { party, shared });
  }
}

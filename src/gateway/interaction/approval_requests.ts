/**
 * The approval requests that clients have received: which party may answer each, and which calls
 * wait for the same answer. Equal requests of one party that are open at the same time are sent once.
 *
 * @module
 */

import type { ApprovalReply } from "../../protocol/answers.ts";
import type { ApprovalAnswer, Question } from "../../protocol/call.ts";
import { dropOldest } from "../../core/memo.ts";
import { onAbort } from "../../io/waiting.ts";
import type { Party } from "../_clients.ts";

/** How long a call waits for the answer to an equal request, in milliseconds. */
const WAIT_MAX_MS = 60_000;
/** For how many approval requests the party is remembered. Fewer are open at once. */
const PARTIES_MAX = 1_000;

/** An approval request for which several calls may wait. */
interface SharedRequest {
  readonly handle: string;
  /** Resolves to the reply, or to undefined if there is none. */
  readonly reply: PromiseWithResolvers<ApprovalReply | undefined>;
  readonly timer: ReturnType<typeof setTimeout>;
}

/** Returns the reply without its effect on later calls. */
function replyOnce(reply: ApprovalReply): ApprovalReply {
  if (reply === "Never") return "No";
  return reply === "No" || reply === "cancelled" ? reply : "Yes";
}

/** The approval requests of all clients. */
export class ApprovalRequests implements Disposable {
  /** The party that received each request as a result, by its handle. */
  readonly #parties = new Map<string, Party>();
  /** The open shared requests of each party, by the value that equal ones have in common. */
  readonly #open = new WeakMap<Party, Map<string, SharedRequest>>();
  /** The party and the common value of each open shared request, by its handle. */
  readonly #shared = new Map<string, { readonly party: Party; readonly shared: string }>();

  /**
   * Waits while the party has an equal request, and returns the reply to that. Returns undefined if
   * this one has to be sent: equal ones then wait until `end()` is called. Rejects with the reason of
   * the signal.
   */
  async replyTo(
    { handle, shared }: Question,
    { party, signal }: { readonly party: Party; readonly signal: AbortSignal },
  ): Promise<ApprovalReply | undefined> {
    if (shared === undefined) return undefined;
    for (;;) {
      const open = this.#open.get(party)?.get(shared);
      if (open === undefined) {
        // Nothing can begin between the lookup and this.
        this.#begin({ handle, shared, party });
        return undefined;
      }
      const { promise, reject } = Promise.withResolvers<never>();
      using _ = onAbort(signal, () => reject(signal.reason));
      const reply = await Promise.race([open.reply.promise, promise]);
      // The call whose request was sent keeps the answer. The others run or end with it, once.
      if (reply !== undefined) return replyOnce(reply);
    }
  }

  /** Records that a party received a request as a result, so that only this party may answer it. */
  sentTo(party: Party, handle: string): void {
    this.#parties.set(handle, party);
    dropOldest(this.#parties, PARTIES_MAX);
  }

  /**
   * Takes the answer that a party sent, for all calls that wait for it. If another party received
   * the request, the returned answer has a handle that belongs to no request.
   */
  take(answer: ApprovalAnswer, party: Party): ApprovalAnswer {
    const receiver = this.#parties.get(answer.handle);
    if (receiver === party) this.end(answer.handle, answer.reply);
    const isOthers = receiver !== undefined && receiver !== party;
    // guard: approval-party
    if (isOthers) return { ...answer, handle: crypto.randomUUID() };
    return answer;
  }

  /** Ends a shared request: all calls that wait for it get the reply. */
  end(handle: string, reply?: ApprovalReply): void {
    const { party, shared } = this.#shared.get(handle) ?? {};
    this.#shared.delete(handle);
    const ofParty = party && this.#open.get(party);
    const open = shared === undefined ? undefined : ofParty?.get(shared);
    if (open === undefined || shared === undefined) return;
    ofParty?.delete(shared);
    clearTimeout(open.timer);
    open.reply.resolve(reply);
  }

  /** Ends all shared requests without a reply. */
  [Symbol.dispose](): void {
    for (const handle of [...this.#shared.keys()]) this.end(handle);
  }

  #begin(
    { handle, shared, party }: Record<"handle" | "shared", string> & { readonly party: Party },
  ): void {
    const ofParty = this.#open.get(party) ?? new Map<string, SharedRequest>();
    this.#open.set(party, ofParty);
    const timer = setTimeout(() => this.end(handle), WAIT_MAX_MS);
    Deno.unrefTimer(timer);
    ofParty.set(shared, { handle, reply: Promise.withResolvers(), timer });
    this.#shared.set(handle, { party, shared });
  }
}

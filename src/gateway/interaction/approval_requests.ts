/**
 * The approval requests that clients have received: which owner may answer each request, and which
 * calls wait for the same answer. PML sends equal requests of one owner that are open at the same
 * time only once.
 *
 * @module
 */

import type { ApprovalReply } from "../../protocol/answers.ts";
import type { ApprovalAnswer, Question } from "../../protocol/call.ts";
import { dropOldest } from "../../core/memo.ts";
import { onAbort } from "../../io/waiting.ts";
import type { RequestOwner } from "../_clients.ts";

/** How long a call waits for the answer to an equal request, in milliseconds. */
const WAIT_MAX_MS = 60_000;
/** The maximum number of requests whose receiver is recorded. Fewer requests are open at once. */
const RECEIVERS_MAX = 1_000;

/** A reply, and where the user gave it. */
type SharedReply = Pick<ApprovalAnswer, "reply" | "channel">;

/** An approval request for which several calls may wait. */
interface SharedRequest {
  readonly handle: string;
  /** Resolves to the reply, or to undefined if there is none. */
  readonly reply: PromiseWithResolvers<SharedReply | undefined>;
  readonly timer: ReturnType<typeof setTimeout>;
}

/**
 * Returns the reply for another call that waits: it has no effect on later calls. `answers` are those
 * that the question of this call offers.
 */
function toReplyOnce(reply: ApprovalReply, answers: Question["answers"]): ApprovalReply {
  if (reply === "Never") return "No";
  if (reply === "No" || reply === "cancelled") return reply;
  // guard: shared-unoffered
  if (!answers.some((offered) => offered.reply === reply)) return "unoffered";
  return "Yes";
}

/** The approval requests of all clients. */
export class ApprovalRequests implements Disposable {
  /** The owner that received a request as a result, by the handle of the request. */
  readonly #receivers = new Map<string, RequestOwner>();
  /** The open requests of each owner, by `Question.shared`, which is the same for equal requests. */
  readonly #openRequests = new WeakMap<RequestOwner, Map<string, SharedRequest>>();
  /** The owner and the `Question.shared` of each open request, by its handle. */
  readonly #sharedByHandle = new Map<
    string,
    { readonly owner: RequestOwner; readonly shared: string }
  >();

  /**
   * Waits for the reply to an equal open request of the owner. Returns undefined if no equal request
   * is open: then the caller sends this request, and equal requests wait until `end()`. Rejects with
   * the reason of the signal.
   */
  async replyTo(
    { handle, shared, answers }: Question,
    { owner, signal }: { readonly owner: RequestOwner; readonly signal: AbortSignal },
  ): Promise<SharedReply | undefined> {
    if (shared === undefined) return undefined;
    for (;;) {
      const open = this.#openRequests.get(owner)?.get(shared);
      if (open === undefined) {
        // There was no `await` since the lookup, so no equal request can have begun in between.
        this.#begin({ handle, shared, owner });
        return undefined;
      }
      const { promise, reject } = Promise.withResolvers<never>();
      using _ = onAbort(signal, () => reject(signal.reason));
      const reply = await Promise.race([open.reply.promise, promise]);
      // Only the call that sent the request gets "Always" and "Never". All other calls get yes or no.
      if (reply === undefined) continue;
      return { reply: toReplyOnce(reply.reply, answers), channel: reply.channel };
    }
  }

  /** Records that an owner received a request as a result, so that only this owner may answer it. */
  recordReceiver(owner: RequestOwner, handle: string): void {
    this.#receivers.set(handle, owner);
    dropOldest(this.#receivers, RECEIVERS_MAX);
  }

  /**
   * Takes the answer that an owner sent, for all calls that wait for it. If another owner received
   * the request, the returned answer has a handle that belongs to no request.
   */
  take(answer: ApprovalAnswer, owner: RequestOwner): ApprovalAnswer {
    const receiver = this.#receivers.get(answer.handle);
    if (receiver === owner) this.end(answer.handle, answer);
    const isOfOtherOwner = receiver !== undefined && receiver !== owner;
    // guard: approval-party
    if (isOfOtherOwner) return { ...answer, handle: crypto.randomUUID() };
    return answer;
  }

  /** Ends a shared request: all calls that wait for it get the reply. */
  end(handle: string, reply?: SharedReply): void {
    const { owner, shared } = this.#sharedByHandle.get(handle) ?? {};
    this.#sharedByHandle.delete(handle);
    const requestsOfOwner = owner && this.#openRequests.get(owner);
    const open = shared === undefined ? undefined : requestsOfOwner?.get(shared);
    if (open === undefined || shared === undefined) return;
    requestsOfOwner?.delete(shared);
    clearTimeout(open.timer);
    open.reply.resolve(reply);
  }

  /** Ends all shared requests without a reply. */
  [Symbol.dispose](): void {
    for (const handle of [...this.#sharedByHandle.keys()]) this.end(handle);
  }

  #begin(
    { handle, shared, owner }: Record<"handle" | "shared", string> & {
      readonly owner: RequestOwner;
    },
  ): void {
    const requestsOfOwner = this.#openRequests.get(owner) ?? new Map<string, SharedRequest>();
    this.#openRequests.set(owner, requestsOfOwner);
    const timer = setTimeout(() => this.end(handle), WAIT_MAX_MS);
    Deno.unrefTimer(timer);
    requestsOfOwner.set(shared, { handle, reply: Promise.withResolvers(), timer });
    this.#sharedByHandle.set(handle, { owner, shared });
  }
}

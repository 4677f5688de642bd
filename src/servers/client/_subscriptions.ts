/**
 * Follows resources and tasks for clients. Meanwhile, keeps the servers running.
 *
 * @module
 */

import { endingError } from "../../core/errors.ts";
import { type JsonObject, objectOf } from "../../core/json.ts";
import { pause, unlessAborted } from "../../io/waiting.ts";
import { RpcError } from "../../protocol/errors.ts";
import { withoutNamed } from "../../protocol/result_members.ts";
import { SUBSCRIPTION_KEY } from "../../protocol/subscriptions.ts";
import { followErrorLine } from "./_error_answers.ts";
import type { UpstreamClients } from "./upstream_clients.ts";
import type { UpstreamsHost } from "./upstreams_host.ts";

/** A resource or a task that a client follows. */
export interface FollowTarget {
  readonly server: string;
  /** The address of the resource, or the id of the task. */
  readonly uri: string;
  readonly isTask?: boolean;
}

/** One try to follow a resource or a task. */
export interface ResourceSubscription extends FollowTarget {
  readonly signal: AbortSignal;
  /** Is called when the server has accepted the subscription. */
  readonly onAgreed: () => void;
}

/** Keeps a server running and follows a target until the signal aborts or the server ends. */
export type Follow = (following: ResourceSubscription) => Promise<void>;

/** The state of a followed resource or task. */
interface FollowedResource {
  followerCount: number;
  /** Aborts when the last follower is removed. */
  readonly end: AbortController;
  /** Aborts the current try, so that the next try begins. */
  retry: AbortController;
  /** Settles when the server accepts or refuses the subscription for the first time. */
  agreed: PromiseWithResolvers<void>;
  /** Whether the server has accepted once. */
  hasAgreed: boolean;
  /** Whether the server has refused. It is asked again only when another follower is added. */
  isRefused: boolean;
}

/**
 * How long to wait before the first failed try is repeated, in milliseconds. Each wait is doubled.
 */
const WAIT_MS = 500;
/** The longest wait before a failed try is repeated, in milliseconds. */
const WAIT_MAX_MS = 30_000;

/** The services of PML that subscriptions use. */
interface SubscriptionsHost extends Pick<UpstreamsHost, "logServer"> {
  readonly clients: Pick<UpstreamClients, "onResourceUpdated">;
}

/** Counts the followers of each resource and task, and follows it again if its server ended. */
export class ResourceSubscriptions implements Disposable {
  readonly #entries = new Map<string, FollowedResource>();
  readonly #follow: Follow;
  readonly #host: SubscriptionsHost;

  /** `follow` makes one try. */
  constructor(host: SubscriptionsHost, follow: Follow) {
    this.#host = host;
    this.#follow = follow;
  }

  /**
   * Adds one follower to a resource or task. Throws if the server does not accept the subscription,
   * or if the signal aborts first.
   */
  async add(followed: FollowTarget, signal: AbortSignal): Promise<void> {
    const key = keyOf(followed);
    const entry = this.#entries.get(key) ?? this.#begin(followed);
    if (entry.isRefused) this.#start(followed, entry);
    entry.followerCount++;
    try {
      await unlessAborted(entry.agreed.promise, signal);
    } catch (error) {
      this.#release(key, entry);
      throw error;
    }
  }

  /** Removes one follower of a resource or task. */
  remove(followed: FollowTarget): void {
    const key = keyOf(followed);
    const entry = this.#entries.get(key);
    if (entry !== undefined) this.#release(key, entry);
  }

  /** Begins to follow all targets again, because the configuration may have changed. */
  followAllAgain(): void {
    for (const { retry } of this.#entries.values()) retry.abort();
  }

  /** Stops following. */
  [Symbol.dispose](): void {
    // Callers that still wait for a server get this reason.
    for (const { end } of this.#entries.values()) end.abort(endingError("follow a resource"));
    this.#entries.clear();
  }

  #begin(followed: FollowTarget): FollowedResource {
    const entry: FollowedResource = {
      followerCount: 0,
      end: new AbortController(),
      retry: new AbortController(),
      agreed: Promise.withResolvers(),
      hasAgreed: false,
      isRefused: false,
    };
    this.#entries.set(keyOf(followed), entry);
    this.#start(followed, entry);
    return entry;
  }

  #start(followed: FollowTarget, entry: FollowedResource): void {
    entry.isRefused = false;
    entry.agreed = Promise.withResolvers();
    // `add` handles a rejection. It is also handled here, because a later try has no call of `add`.
    entry.agreed.promise.catch(() => {});
    void this.#followUntilEnd(followed, entry);
  }

  #release(key: string, entry: FollowedResource): void {
    if (--entry.followerCount > 0) return;
    entry.end.abort();
    // A newer entry may have this key now.
    if (this.#entries.get(key) === entry) this.#entries.delete(key);
  }

  async #followUntilEnd(followed: FollowTarget, entry: FollowedResource): Promise<void> {
    const { end: { signal: end }, agreed } = entry;
    const { server, uri, isTask } = followed;
    const onAgreed = () => {
      agreed.resolve();
      // The resource may have changed while it was not followed.
      if (entry.hasAgreed && !isTask) this.#host.clients.onResourceUpdated(server, uri);
      entry.hasAgreed = true;
    };
    for (let wait = WAIT_MS; !end.aborted; wait = Math.min(wait * 2, WAIT_MAX_MS)) {
      const since = Date.now();
      entry.retry = new AbortController();
      const { signal: retry } = entry.retry;
      const signal = AbortSignal.any([end, retry]);
      try {
        await this.#follow({ ...followed, signal, onAgreed });
      } catch (error) {
        // A try that was aborted to begin again has not failed.
        entry.isRefused = error instanceof RpcError && !retry.aborted;
        // `add` throws the first error. After the server has accepted once, this line has no
        // effect.
        if (!retry.aborted) agreed.reject(error);
        if (!signal.aborted) this.#host.logServer(server, "warn", followErrorLine(server, error));
        if (entry.isRefused) return;
      }
      // A try that lasted long was a success, so the waits begin anew.
      if (Date.now() - since > WAIT_MAX_MS) wait = WAIT_MS;
      if (!retry.aborted) await pause(wait, signal);
    }
  }
}

function keyOf({ server, uri, isTask = false }: FollowTarget): string {
  return `${server} ${isTask} ${uri}`;
}

/** Removes the id of PML's own subscription, which means nothing to a client, from params. */
export function withoutSubscription(params: JsonObject): JsonObject {
  const meta = objectOf(params._meta);
  if (!(SUBSCRIPTION_KEY in meta)) return params;
  return { ...params, _meta: withoutNamed(meta, [SUBSCRIPTION_KEY]) };
}

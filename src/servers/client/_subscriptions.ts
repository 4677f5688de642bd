/**
 * The resources that clients follow. Their servers keep running.
 *
 * @module
 */

import { ending } from "../../core/errors.ts";
import { pause, unlessAborted } from "../../io/waiting.ts";
import { RpcError } from "../../protocol/errors.ts";
import { notFollowed } from "./_answers.ts";
import type { UpstreamClients } from "./upstream_clients.ts";
import type { UpstreamsHost } from "./upstreams_host.ts";

/** A resource of a server, or a task. */
export interface Followed {
  readonly server: string;
  /** The address of the resource, or the id of the task. */
  readonly uri: string;
  readonly isTask?: boolean;
}

/** A resource that is being followed. */
export interface ResourceSubscription extends Followed {
  readonly signal: AbortSignal;
  /** Is called when the server has accepted. */
  readonly onAgreed: () => void;
}

/** Keeps a server running and follows a resource, until the signal aborts or the server ends. */
export type Follow = (following: ResourceSubscription) => Promise<void>;

interface FollowedResource {
  count: number;
  readonly end: AbortController;
  /** Ends the present try, so that the next one begins. */
  retry: AbortController;
  /** Settles with the first try since the server was asked. */
  agreed: PromiseWithResolvers<void>;
  /** Whether the server has accepted once. */
  hasAgreed: boolean;
  /** Whether the server has refused, so that it is asked again only for another follower. */
  isRefused: boolean;
}

const WAIT_MS = 500;
const WAIT_MAX_MS = 30_000;

/** The log of errors, and the clients, which are notified if a resource is followed again. */
interface SubscriptionsHost extends Pick<UpstreamsHost, "logServer"> {
  readonly clients: Pick<UpstreamClients, "updated">;
}

/** Counts the followers of each resource, and follows it again if its server ended. */
export class ResourceSubscriptions implements Disposable {
  readonly #entries = new Map<string, FollowedResource>();
  readonly #follow: Follow;
  readonly #host: SubscriptionsHost;

  /** Takes the host, and the function that follows. */
  constructor(host: SubscriptionsHost, follow: Follow) {
    this.#host = host;
    this.#follow = follow;
  }

  /**
   * Adds one follower to a resource. Throws if the server does not accept, or if the signal aborts
   * first.
   */
  async add(followed: Followed, signal: AbortSignal): Promise<void> {
    const key = keyOf(followed);
    const entry = this.#entries.get(key) ?? this.#begin(followed);
    if (entry.isRefused) this.#start(followed, entry);
    entry.count++;
    try {
      await unlessAborted(entry.agreed.promise, signal);
    } catch (error) {
      this.#release(key, entry);
      throw error;
    }
  }

  /** Removes one follower of a resource. */
  remove(followed: Followed): void {
    const key = keyOf(followed);
    const entry = this.#entries.get(key);
    if (entry !== undefined) this.#release(key, entry);
  }

  /** Follows everything again: the configuration may have changed. */
  again(): void {
    for (const { retry } of this.#entries.values()) retry.abort();
  }

  /** Stops following. */
  [Symbol.dispose](): void {
    // Callers that still wait for a server get this reason.
    for (const { end } of this.#entries.values()) end.abort(ending("follow a resource"));
    this.#entries.clear();
  }

  #begin(followed: Followed): FollowedResource {
    const own: FollowedResource = {
      count: 0,
      end: new AbortController(),
      retry: new AbortController(),
      agreed: Promise.withResolvers(),
      hasAgreed: false,
      isRefused: false,
    };
    this.#entries.set(keyOf(followed), own);
    this.#start(followed, own);
    return own;
  }

  #start(followed: Followed, entry: FollowedResource): void {
    entry.isRefused = false;
    entry.agreed = Promise.withResolvers();
    // Only `add` waits for it.
    entry.agreed.promise.catch(() => {});
    void this.#keep(followed, entry);
  }

  #release(key: string, entry: FollowedResource): void {
    if (--entry.count > 0) return;
    entry.end.abort();
    // A newer entry may have this key now.
    if (this.#entries.get(key) === entry) this.#entries.delete(key);
  }

  async #keep(followed: Followed, entry: FollowedResource): Promise<void> {
    const { end: { signal: end }, agreed } = entry;
    const { server, uri, isTask } = followed;
    const onAgreed = () => {
      agreed.resolve();
      // It may have changed in between.
      if (entry.hasAgreed && !isTask) this.#host.clients.updated(server, uri);
      entry.hasAgreed = true;
    };
    for (let wait = WAIT_MS; !end.aborted; wait = Math.min(wait * 2, WAIT_MAX_MS)) {
      const since = Date.now();
      entry.retry = new AbortController();
      const { signal: again } = entry.retry;
      const signal = AbortSignal.any([end, again]);
      try {
        await this.#follow({ ...followed, signal, onAgreed });
      } catch (error) {
        // A try that begins again has not failed.
        entry.isRefused = error instanceof RpcError && !again.aborted;
        // The first error goes to `add`. For later errors, this changes nothing.
        if (!again.aborted) agreed.reject(error);
        if (!signal.aborted) this.#host.logServer(server, "warn", notFollowed(server, error));
        if (entry.isRefused) return;
      }
      // A server that ran for long does not fail each time.
      if (Date.now() - since > WAIT_MAX_MS) wait = WAIT_MS;
      if (!again.aborted) await pause(wait, signal);
    }
  }
}

function keyOf({ server, uri, isTask = false }: Followed): string {
  return `${server} ${isTask} ${uri}`;
}

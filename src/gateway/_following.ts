/**
 * Follows resources for clients. A client with a session subscribes to each. A client without one
 * opens a stream, and names everything that it listens for.
 *
 * @module
 */

import type { Client, ClientListener, Clients, Follower } from "./_clients.ts";
import type { Offers, ServerItem } from "./_offers.ts";
import { isOwnResource } from "./_own_resources.ts";
import type { ForwardedRequest, ForwardedRequests } from "./_forwarded_requests.ts";
import type { ClientRequest } from "./interaction/client_request.ts";

/** The options of `ResourceFollowing`. */
export interface FollowingOptions {
  readonly clients: Clients;
  readonly offers: Offers;
  readonly requests: ForwardedRequests;
  /** Removes a follower of a resource. */
  readonly unfollow: (followed: { readonly server: string; readonly uri: string }) => void;
  /** Called with the error if a resource cannot be followed for a stream, which gets no errors. */
  readonly onLost: (error: Error) => void;
  readonly onError: (error: Error) => void;
}

/** Follows the resources that clients want to follow, and no others. */
export class ResourceFollowing {
  readonly #options: FollowingOptions;

  /** Takes the options; follows nothing. */
  constructor(options: FollowingOptions) {
    this.#options = options;
  }

  /** Follows a resource for a client that has a session. */
  async subscribe(request: ClientRequest, uri: string): Promise<void> {
    const { client } = request;
    const ask = (forwarded: ForwardedRequest) => this.#options.requests.ask(request, forwarded);
    await inTurn(client, () => this.#follow({ client, uri }, ask));
  }

  /** Stops following a resource. No rule forbids that. */
  async unsubscribe(client: Client, uri: unknown): Promise<void> {
    await inTurn(client, () => this.#unfollow(client, uri));
  }

  /** Follows these resources for a stream, and no others. */
  listen(listener: ClientListener, uris: readonly string[]): void {
    const { requests, onLost, onError } = this.#options;
    const ask = (forwarded: ForwardedRequest) => requests.askAlone(forwarded);
    inTurn(listener, async () => {
      for (const uri of listener.followed.keys()) {
        if (!uris.includes(uri)) this.#unfollow(listener, uri);
      }
      for (const uri of uris) await this.#follow({ client: listener, uri }, ask).catch(onLost);
    }).catch(onError);
  }

  /** Stops following everything for a client or a stream that has disconnected. */
  leave(one: Follower): void {
    for (const uri of one.followed.keys()) this.#unfollow(one, uri);
  }

  async #follow(
    { client, uri }: { readonly client: Follower; readonly uri: string },
    ask: (forwarded: ForwardedRequest) => Promise<unknown>,
  ): Promise<void> {
    const { clients, offers } = this.#options;
    if (isOwnResource(uri) || client.followed.has(uri)) return;
    const place = await offers.resource(uri);
    const { server, name } = place;
    const about = { method: "resources/subscribe", params: { uri: name } };
    const isOffered = await offers.isOffered(place);
    await ask({ ruleName: offers.ruleNameOf(place), server, ...about, isOffered });
    if (clients.has(client)) client.followed.set(uri, place);
    else this.#giveUp(place);
  }

  #unfollow(client: Follower, uri: unknown): void {
    const place = client.followed.get(uri as string);
    if (place === undefined) return;
    client.followed.delete(uri as string);
    this.#giveUp(place);
  }

  #giveUp({ server, name }: ServerItem): void {
    this.#options.unfollow({ server, uri: name });
  }
}

/** Makes the changes of one follower one after the other. */
async function inTurn(client: Follower, work: () => void | Promise<void>): Promise<void> {
  const turn = client.turn.then(work);
  client.turn = turn.catch(() => {}); // the caller gets the error
  await turn;
}

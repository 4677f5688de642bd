/**
 * Follows resources for clients. A client with a session subscribes to each; one without says what
 * it listens for, as a whole.
 *
 * @module
 */

import type { Client, Clients } from "./_clients.ts";
import type { ClientRequest } from "./_exchange.ts";
import type { Offers, Place } from "./_offers.ts";
import { isOwn } from "./_own_resources.ts";
import type { ServerRequests, Wanted } from "./_server_requests.ts";

/** What following needs of the gateway. */
export interface FollowingOptions {
  readonly clients: Clients;
  readonly offers: Offers;
  readonly requests: ServerRequests;
  /** Takes back a request to follow a resource. */
  readonly unfollow: (followed: { readonly server: string; readonly uri: string }) => void;
  /** Told of a resource that cannot be followed for a client that nobody can tell. */
  readonly onLost: (error: Error) => void;
  readonly onError: (error: Error) => void;
}

/** Has servers tell of the resources that clients follow, and of no others. */
export class Following {
  readonly #options: FollowingOptions;
  #listened: readonly string[] = [];

  /** Follows nothing yet. */
  constructor(options: FollowingOptions) {
    this.#options = options;
  }

  /** Follows a resource for a client that asked for it. */
  async subscribe(request: ClientRequest, uri: string): Promise<void> {
    const { client } = request;
    const ask = (wanted: Wanted) => this.#options.requests.ask(request, wanted);
    await inTurn(client, () => this.#follow({ client, uri }, ask));
  }

  /** Gives a resource up, which nothing can forbid. */
  async unsubscribe(client: Client, uri: unknown): Promise<void> {
    await inTurn(client, () => this.#unfollow(client, uri));
  }

  /** Follows these resources, and no others, for the clients without a session. */
  listenFor(uris: readonly string[]): void {
    this.#listened = uris;
    for (const client of this.#options.clients.modern) this.listen(client);
  }

  /** Follows what a client without a session listens for when its turn comes, and nothing else. */
  listen(client: Client): void {
    const { requests, onLost, onError } = this.#options;
    const ask = (wanted: Wanted) => requests.askAlone(wanted);
    inTurn(client, async () => {
      const uris = this.#listened;
      for (const uri of client.followed.keys()) {
        if (!uris.includes(uri)) this.#unfollow(client, uri);
      }
      for (const uri of uris) await this.#follow({ client, uri }, ask).catch(onLost);
    }).catch(onError);
  }

  /** Lets a client go, with all that it followed. */
  leave(client: Client): void {
    this.#options.clients.remove(client);
    for (const uri of client.followed.keys()) this.#unfollow(client, uri);
  }

  async #follow(
    { client, uri }: { readonly client: Client; readonly uri: string },
    ask: (wanted: Wanted) => Promise<unknown>,
  ): Promise<void> {
    const { clients, offers } = this.#options;
    if (isOwn(uri) || client.followed.has(uri)) return;
    const place = await offers.resource(uri);
    const { server, name } = place;
    const params = { uri: name };
    await ask({ door: "@resources", server, method: "resources/subscribe", params });
    if (clients.has(client)) client.followed.set(uri, place);
    else this.#giveUp(place);
  }

  #unfollow(client: Client, uri: unknown): void {
    const place = client.followed.get(uri as string);
    if (place === undefined) return;
    client.followed.delete(uri as string);
    this.#giveUp(place);
  }

  #giveUp({ server, name }: Place): void {
    this.#options.unfollow({ server, uri: name });
  }
}

/** One after the other: what came first has to be over before its end counts. */
async function inTurn(client: Client, work: () => void | Promise<void>): Promise<void> {
  const turn = client.turn.then(work);
  client.turn = turn.catch(() => {}); // told to who waits for it
  await turn;
}

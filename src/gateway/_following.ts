/**
 * Follows resources for clients. A client with a session subscribes to each. A client without one
 * opens a stream, and names everything that it listens for.
 *
 * @module
 */

import type { Client, ClientListener, Follower } from "./_clients.ts";
import type { ServerItem } from "./_offers.ts";
import { isOwnResource } from "./_own_resources.ts";
import type { ForwardedRequest, ForwardedRequests } from "./_forwarded_requests.ts";
import type { ClientRequest } from "./interaction/client_request.ts";
import type { GatewayHost } from "./options.ts";
import type { RequestGateway } from "./interaction/interaction.ts";

/** Follows the resources that clients want to follow, and no others. */
export class ResourceFollowing {
  readonly #host: GatewayHost;
  readonly #gateway: RequestGateway;
  readonly #requests: ForwardedRequests;

  /** Takes the collaborators; follows nothing. */
  constructor(host: GatewayHost, gateway: RequestGateway, requests: ForwardedRequests) {
    this.#host = host;
    this.#gateway = gateway;
    this.#requests = requests;
  }

  /** Follows a resource for a client that has a session. */
  async subscribe(request: ClientRequest, uri: string): Promise<void> {
    const { client } = request;
    const ask = (forwarded: ForwardedRequest) => this.#requests.ask(request, forwarded);
    await inTurn(client, () => this.#follow({ client, uri }, ask));
  }

  /** Stops following a resource. No rule forbids that. */
  async unsubscribe(client: Client, uri: unknown): Promise<void> {
    await inTurn(client, () => this.#unfollow(client, uri));
  }

  /** Follows these resources for a stream, and no others. */
  listen(listener: ClientListener, uris: readonly string[]): void {
    const { log } = this.#host;
    const ask = (forwarded: ForwardedRequest) => this.#requests.askAlone(forwarded);
    inTurn(listener, async () => {
      for (const uri of listener.followed.keys()) {
        if (!uris.includes(uri)) this.#unfollow(listener, uri);
      }
      for (const uri of uris) {
        // A stream gets no errors.
        await this.#follow({ client: listener, uri }, ask)
          .catch(({ message }) => log.warn(message));
      }
    }).catch(({ message }) => log.debug(message));
  }

  /** Stops following everything for a client or a stream that has disconnected. */
  leave(one: Follower): void {
    for (const uri of one.followed.keys()) this.#unfollow(one, uri);
  }

  async #follow(
    { client, uri }: { readonly client: Follower; readonly uri: string },
    ask: (forwarded: ForwardedRequest) => Promise<unknown>,
  ): Promise<void> {
    const { clients, offers } = this.#gateway;
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
    this.#host.unfollow({ server, uri: name });
  }
}

/** Makes the changes of one follower one after the other. */
async function inTurn(client: Follower, work: () => void | Promise<void>): Promise<void> {
  const turn = client.turn.then(work);
  client.turn = turn.catch(() => {}); // the caller gets the error
  await turn;
}

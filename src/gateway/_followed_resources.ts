/**
 * Follows resources for clients, which then get notifications of changes. A client with a session
 * subscribes to each resource. A client without a session opens a stream, and names all its
 * resources in one request.
 *
 * @module
 */

import type { Client, ClientListener, Follower } from "./_clients.ts";
import type { ServerItem } from "./_offers.ts";
import { isOwnResource } from "./_own_resources.ts";
import type { ForwardedRequest, ForwardedRequests } from "./_forwarded_requests.ts";
import type { ClientRequest } from "./interaction/request_client.ts";
import type { GatewayHost } from "./options.ts";
import type { RequestGateway } from "./interaction/interaction.ts";

/** Subscribes at servers to the resources that clients follow. */
export class FollowedResources {
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
    const ask = (forwarded: ForwardedRequest) => this.#requests.send(request, forwarded);
    await changeInOrder(client, () => this.#follow({ client, uri }, ask));
  }

  /** Stops following a resource. This needs no permission. */
  async unsubscribe(client: Client, uri: unknown): Promise<void> {
    await changeInOrder(client, () => this.#unfollow(client, uri));
  }

  /** Sets the resources that a stream follows. */
  setFollowed(listener: ClientListener, uris: readonly string[]): void {
    const { log } = this.#host;
    const ask = (forwarded: ForwardedRequest) => this.#requests.sendWithoutInput(forwarded);
    changeInOrder(listener, async () => {
      for (const uri of listener.followed.keys()) {
        if (!uris.includes(uri)) this.#unfollow(listener, uri);
      }
      for (const uri of uris) {
        // Errors are only logged, because a stream has no answer that could contain them.
        await this.#follow({ client: listener, uri }, ask)
          .catch(({ message }) => log.warn(message));
      }
    }).catch(({ message }) => log.debug(message));
  }

  /** Stops following all resources of a client or a stream that has disconnected. */
  unfollowAll(follower: Follower): void {
    for (const uri of follower.followed.keys()) this.#unfollow(follower, uri);
  }

  async #follow(
    { client, uri }: { readonly client: Follower; readonly uri: string },
    ask: (forwarded: ForwardedRequest) => Promise<unknown>,
  ): Promise<void> {
    const { clients, offers } = this.#gateway;
    if (isOwnResource(uri) || client.followed.has(uri)) return;
    const place = await offers.findResource(uri);
    const { server, name } = place;
    const isOffered = await offers.isOffered(place);
    await ask({
      ruleName: offers.ruleNameOf(place),
      server,
      method: "resources/subscribe",
      params: { uri: name },
      isOffered,
    });
    if (clients.has(client)) client.followed.set(uri, place);
    else this.#stopAtServer(place);
  }

  #unfollow(client: Follower, uri: unknown): void {
    const place = client.followed.get(uri as string);
    if (place === undefined) return;
    client.followed.delete(uri as string);
    this.#stopAtServer(place);
  }

  #stopAtServer({ server, name }: ServerItem): void {
    this.#host.unfollow({ server, uri: name });
  }
}

/** Runs a change of the resources that a client follows, after all earlier changes. */
async function changeInOrder(client: Follower, work: () => void | Promise<void>): Promise<void> {
  const turn = client.turn.then(work);
  client.turn = turn.catch(() => {}); // the caller gets the error
  await turn;
}

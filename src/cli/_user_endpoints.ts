/**
 * The users of this PML over HTTP: its owner, and the identities of `config.yaml`. Each identity has
 * its own PML in this process: rules, servers, sandboxes, questions and tasks.
 *
 * @module
 */

import { messageOf } from "../core/errors.ts";
import type { App } from "../app/app.ts";
import type { Identity } from "../config/current_config.ts";
import type { JsonObject } from "../core/json.ts";
import type { Gateway, Listening } from "../gateway/gateway.ts";
import { stampAt } from "../io/place.ts";
import type { Connection, Hello } from "../protocol/connection.ts";
import {
  type EndpointHost,
  type EndpointLimits,
  HttpEndpoint,
  type SendNotification,
} from "../transport/http/endpoint.ts";
import type { Replica } from "../transport/replicas/replica.ts";
import { sameHash, tokenHash, tokenIn } from "../transport/http/token.ts";

/** The options of `UserEndpoints`. */
export interface UserEndpointsOptions {
  /** The app of the owner. */
  readonly app: App;
  /** The hash of the owner's token. */
  readonly token: string;
  /** Opens the PML of an identity. */
  readonly open: (identity: string) => Promise<App>;
  /** This process, if several serve together. */
  readonly replica: Replica | undefined;
}

/** The PML of an identity, and the endpoint for its requests. */
interface IdentityEndpoint {
  /** The hash of its token. */
  readonly token: string;
  readonly app: App;
  readonly endpoint: HttpEndpoint;
}

/** The endpoints of all users. */
export class UserEndpoints implements AsyncDisposable {
  /** The endpoint of the owner. */
  readonly owner: Promise<HttpEndpoint>;
  readonly #options: UserEndpointsOptions;
  readonly #own = new Map<string, Promise<IdentityEndpoint>>();

  /** Opens the endpoint of the owner. Those of identities are opened by their first requests. */
  constructor(options: UserEndpointsOptions) {
    this.#options = options;
    this.owner = openEndpoint(options.app, { identity: null, replica: options.replica });
    // A revoked identity is gone at once, with everything that it started.
    options.app.policy.onChange(() => this.#endRevoked());
  }

  /** Returns the endpoint for a header `Authorization`; undefined if there is none. */
  for(authorization: string): Promise<HttpEndpoint | undefined> {
    const token = tokenHash(tokenIn(authorization));
    return this.of(sameHash(token, this.#options.token) ? null : token);
  }

  /** Returns the endpoint of the owner, or of the token with this hash; undefined if there is none. */
  async of(token: string | null): Promise<HttpEndpoint | undefined> {
    const { policy } = this.#options.app;
    // A token may have been revoked where the watcher missed it.
    if (!policy.isCurrent()) await policy.refresh();
    if (token === null) return await this.owner;
    const identity = this.#identities().values().find((one) => sameHash(one.token, token));
    return identity && (await (this.#own.get(identity.name) ?? this.#open(identity))).endpoint;
  }

  /** Ends the streams on which nothing is answered. */
  async hush(): Promise<void> {
    for (const { endpoint } of await this.#opened()) endpoint.hush();
    (await this.owner).hush();
  }

  /** Resolves when the notifications that clients have sent are passed on. */
  async passedOn(): Promise<void> {
    const apps = [this.#options.app, ...(await this.#opened()).map(({ app }) => app)];
    await Promise.all(apps.map(({ openGateway }) => openGateway?.passedOn()));
  }

  /** Ends everything. */
  async [Symbol.asyncDispose](): Promise<void> {
    const own = await this.#opened();
    await (await this.owner)[Symbol.asyncDispose]();
    for (const one of own) await end(one);
  }

  #identities(): ReadonlyMap<string, Identity> {
    return this.#options.app.loaded().others?.identities ?? new Map();
  }

  #open({ name, token }: Identity): Promise<IdentityEndpoint> {
    const { open, replica } = this.#options;
    const opened = open(name).then(async (app) => {
      app.watch();
      return { token, app, endpoint: await openEndpoint(app, { identity: token, replica }) };
    });
    this.#own.set(name, opened);
    opened.catch(() => this.#own.delete(name));
    return opened;
  }

  /** Returns those that were opened. */
  async #opened(): Promise<readonly IdentityEndpoint[]> {
    const own = await Promise.allSettled(this.#own.values());
    return own.flatMap((one) => one.status === "fulfilled" ? [one.value] : []);
  }

  #endRevoked(): void {
    const { person: { hash, path } } = this.#options.app.loaded();
    // A mistake in the file revokes no identity: running ones continue, and none is added meanwhile.
    // guard: revoked-slip
    if (!hash && stampAt(path)) return;
    const identities = this.#identities();
    for (const [name, opened] of this.#own) {
      opened.then(async (own) => {
        if (identities.get(name)?.token === own.token) return;
        this.#own.delete(name);
        await end(own);
      }).catch((error) => this.#options.app.log.warn(messageOf(error)));
    }
  }
}

/** Answers with the gateway of a PML. */
class AppEndpointHost implements EndpointHost {
  readonly #app: App;
  readonly #gateway: Gateway;

  constructor(app: App, gateway: Gateway) {
    this.#app = app;
    this.#gateway = gateway;
  }

  connect(...client: Parameters<Gateway["connect"]>): Connection {
    return this.#gateway.connect(...client);
  }

  hello(isStateless: boolean): Hello {
    return this.#app.hello(isStateless);
  }

  listen(tell: SendNotification): Listening {
    return this.#gateway.listen({ tell });
  }

  isTask(id: string): boolean {
    return this.#gateway.hasTask(id);
  }

  declared(able: JsonObject): void {
    this.#app.servers.lists.serve(able);
  }
}

async function openEndpoint(
  app: App,
  { identity, replica }: Pick<UserEndpointsOptions, "replica"> & {
    readonly identity: string | null;
  },
): Promise<HttpEndpoint> {
  const gateway = await app.gateway();
  const party = { identity, prefix: replica?.prefix ?? "" };
  const endpoint = new HttpEndpoint(new AppEndpointHost(app, gateway), endpointLimits(app), party);
  gateway.clients.streams = endpoint;
  gateway.replica = replica?.for(identity, {
    questions: async () => (await app.callPath()).approvals,
    look: lookOf(app),
  });
  return endpoint;
}

/**
 * Returns a function that reads the configuration again if its files changed. The system does not
 * report changes by another machine on a shared folder.
 */
function lookOf({ policy, closing, log }: App): () => void {
  return () => {
    if (closing.aborted || policy.isCurrent()) return;
    policy.refresh().catch((error) => log.warn(messageOf(error)));
  };
}

/** Returns the limits of an HTTP endpoint. */
export function endpointLimits(app: App): EndpointLimits {
  const { connections, inputBytes, queuedBytes } = app.config().limits;
  return { connections, inputBytes, queuedBytes };
}

async function end({ endpoint, app }: IdentityEndpoint): Promise<void> {
  await endpoint[Symbol.asyncDispose]();
  await app[Symbol.asyncDispose]();
}

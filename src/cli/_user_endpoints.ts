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
import { stampAt } from "../io/path_info.ts";
import type { Connection, Hello } from "../protocol/connection.ts";
import {
  type EndpointHost,
  type EndpointLimits,
  HttpEndpoint,
  type SendNotification,
} from "../transport/http/endpoint.ts";
import type { Replica } from "../transport/replicas/replica.ts";
import { isSameHash, tokenHash, tokenIn } from "../transport/http/token.ts";

/** The options of `UserEndpoints`. */
export interface UserEndpointsOptions {
  /** The app of the owner. */
  readonly app: App;
  /** The hash of the owner's token. */
  readonly tokenHash: string;
  /** Opens the PML of the identity with this name. */
  readonly open: (name: string) => Promise<App>;
  /** This process, if several serve together. */
  readonly replica: Replica | undefined;
}

/** The PML of an identity, and the endpoint for its requests. */
interface IdentityEndpoint {
  /** The hash of its token. */
  readonly tokenHash: string;
  readonly app: App;
  readonly endpoint: HttpEndpoint;
}

/** The endpoints of all users. */
export class UserEndpoints implements AsyncDisposable {
  /** The endpoint of the owner. */
  readonly owner: Promise<HttpEndpoint>;
  readonly #options: UserEndpointsOptions;
  readonly #identityEndpoints = new Map<string, Promise<IdentityEndpoint>>();

  /** Opens the endpoint of the owner. The first request of an identity opens its endpoint. */
  constructor(options: UserEndpointsOptions) {
    this.#options = options;
    this.owner = openEndpoint(options.app, { tokenHash: null, replica: options.replica });
    // Revoking an identity ends its PML at once, with everything that the identity started.
    options.app.policy.onChange(() => this.#endRevoked());
  }

  /** Returns the endpoint for a header `Authorization`; undefined if its token is unknown. */
  forAuthorization(authorization: string): Promise<HttpEndpoint | undefined> {
    const hash = tokenHash(tokenIn(authorization));
    return this.forTokenHash(isSameHash(hash, this.#options.tokenHash) ? null : hash);
  }

  /**
   * Returns the endpoint of the identity whose token has this hash, or of the owner for null.
   * Undefined if no identity has such a token.
   */
  async forTokenHash(hash: string | null): Promise<HttpEndpoint | undefined> {
    const { policy } = this.#options.app;
    // The watcher may have missed a change that revoked the token.
    if (!policy.isCurrent()) await policy.refresh();
    if (hash === null) return await this.owner;
    const identity = this.#identities().values()
      .find(({ token }) => token !== undefined && isSameHash(token, hash));
    if (identity === undefined) return undefined;
    const { name } = identity;
    return (await (this.#identityEndpoints.get(name) ?? this.#open(name, hash))).endpoint;
  }

  /** Ends the streams that carry no answers, only notifications. */
  async closeStandalone(): Promise<void> {
    for (const { endpoint } of await this.#startedEndpoints()) endpoint.closeStandalone();
    (await this.owner).closeStandalone();
  }

  /** Resolves when the notifications that clients have sent are passed on. */
  async whenPassedOn(): Promise<void> {
    const apps = [this.#options.app, ...(await this.#startedEndpoints()).map(({ app }) => app)];
    await Promise.all(apps.map(({ openGateway }) => openGateway?.whenPassedOn()));
  }

  /** Ends everything. */
  async [Symbol.asyncDispose](): Promise<void> {
    const identityEndpoints = await this.#startedEndpoints();
    await (await this.owner)[Symbol.asyncDispose]();
    for (const one of identityEndpoints) await closeIdentity(one);
  }

  #identities(): ReadonlyMap<string, Identity> {
    return this.#options.app.loaded().access?.identities ?? new Map();
  }

  #open(name: string, hash: string): Promise<IdentityEndpoint> {
    const { open, replica } = this.#options;
    const opened = open(name).then(async (app) => {
      app.watch();
      const endpoint = await openEndpoint(app, { tokenHash: hash, replica });
      return { tokenHash: hash, app, endpoint };
    });
    this.#identityEndpoints.set(name, opened);
    opened.catch(() => this.#identityEndpoints.delete(name));
    return opened;
  }

  /** Returns the PMLs of the identities that have sent a request. */
  async identityApps(): Promise<readonly App[]> {
    return (await this.#startedEndpoints()).map(({ app }) => app);
  }

  /** Returns the endpoints of the identities that have sent a request, when they are open. */
  async #startedEndpoints(): Promise<readonly IdentityEndpoint[]> {
    const results = await Promise.allSettled(this.#identityEndpoints.values());
    return results.flatMap((one) => one.status === "fulfilled" ? [one.value] : []);
  }

  #endRevoked(): void {
    const { userConfig: { hash, path } } = this.#options.app.loaded();
    // While the file has a mistake, the identities stay that PML has already opened.
    const isUnusable = hash === undefined && stampAt(path) !== undefined;
    // guard: revoked-slip
    if (isUnusable) return;
    const identities = this.#identities();
    for (const [name, opened] of this.#identityEndpoints) {
      opened.then(async (endpoint) => {
        if (identities.get(name)?.token === endpoint.tokenHash) return;
        this.#identityEndpoints.delete(name);
        this.#options.app.endedMetrics.push(endpoint.app.metrics);
        await closeIdentity(endpoint);
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

  listen(notify: SendNotification): Listening {
    return this.#gateway.listen({ notify });
  }

  isTask(id: string): boolean {
    return this.#gateway.hasTask(id);
  }

  onDeclared(capabilities: JsonObject): void {
    this.#app.servers.lists.setCapabilities(capabilities);
  }
}

async function openEndpoint(
  app: App,
  { tokenHash, replica }: Pick<UserEndpointsOptions, "replica"> & {
    /** The hash of the token of an identity; null for the owner. */
    readonly tokenHash: string | null;
  },
): Promise<HttpEndpoint> {
  const gateway = await app.gateway();
  const user = { identity: tokenHash, prefix: replica?.prefix ?? "" };
  const endpoint = new HttpEndpoint(new AppEndpointHost(app, gateway), endpointLimits(app), user);
  gateway.clients.streams = endpoint;
  gateway.replica = replica?.statesFor(tokenHash, {
    questions: async () => (await app.callPath()).approvals,
    checkForChanges: configRefresher(app),
  });
  return endpoint;
}

/**
 * Returns a function that reads the configuration again if its files changed. The system does not
 * report changes by another machine on a shared folder.
 */
function configRefresher({ policy, closing, log }: App): () => void {
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

async function closeIdentity({ endpoint, app }: IdentityEndpoint): Promise<void> {
  await endpoint[Symbol.asyncDispose]();
  await app[Symbol.asyncDispose]();
}

/**
 * The users of this PML over HTTP: its owner, and the identities of `config.yaml`. Each identity has
 * its own PML in this process: rules, servers, sandboxes, questions and tasks.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import type { Identity } from "../config/current_config.ts";
import type { JsonObject } from "../core/json.ts";
import type { Gateway, Listening } from "../gateway/gateway.ts";
import { stampAt } from "../io/place.ts";
import type { Connection, Hello } from "../protocol/connection.ts";
import {
  type FaceHost,
  type FaceLimits,
  HttpFace,
  type SendNotification,
} from "../transport/http/endpoint.ts";
import type { Replica } from "../transport/replicas/replica.ts";
import { sameHash, tokenHash, tokenIn } from "../transport/http/token.ts";

/** The options of `Faces`. */
export interface FacesOptions {
  /** The PML of the person. */
  readonly app: App;
  /** The hash of the person's token. */
  readonly token: string;
  /** Opens the PML of an identity. */
  readonly open: (identity: string) => Promise<App>;
  /** This process, if several serve together. */
  readonly replica: Replica | undefined;
}

/** The PML of an identity, and the endpoint for its requests. */
interface Own {
  /** The hash of its token. */
  readonly token: string;
  readonly app: App;
  readonly face: HttpFace;
}

/** The endpoints of all users. */
export class Faces implements AsyncDisposable {
  /** The endpoint of the owner. */
  readonly person: Promise<HttpFace>;
  readonly #options: FacesOptions;
  readonly #own = new Map<string, Promise<Own>>();

  /** Opens the endpoint of the owner. Those of identities are opened by their first requests. */
  constructor(options: FacesOptions) {
    this.#options = options;
    this.person = faceOf(options.app, { identity: null, replica: options.replica });
    // A revoked identity is gone at once, with everything that it started.
    options.app.policy.onChange(() => this.#endRevoked());
  }

  /** Returns the endpoint for a header `Authorization`; undefined if there is none. */
  for(authorization: string): Promise<HttpFace | undefined> {
    const token = tokenHash(tokenIn(authorization));
    return this.of(sameHash(token, this.#options.token) ? null : token);
  }

  /** Returns the endpoint of the owner, or of the token with this hash; undefined if there is none. */
  async of(token: string | null): Promise<HttpFace | undefined> {
    const { policy } = this.#options.app;
    // A token may have been revoked where the watcher missed it.
    if (!policy.isCurrent()) await policy.refresh();
    if (token === null) return await this.person;
    const identity = this.#identities().values().find((one) => sameHash(one.token, token));
    return identity && (await (this.#own.get(identity.name) ?? this.#open(identity))).face;
  }

  /** Ends the streams on which nothing is answered. */
  async hush(): Promise<void> {
    for (const { face } of await this.#opened()) face.hush();
    (await this.person).hush();
  }

  /** Resolves when the notifications that clients have sent are passed on. */
  async passedOn(): Promise<void> {
    const apps = [this.#options.app, ...(await this.#opened()).map(({ app }) => app)];
    await Promise.all(apps.map(({ openGateway }) => openGateway?.passedOn()));
  }

  /** Ends everything. */
  async [Symbol.asyncDispose](): Promise<void> {
    const own = await this.#opened();
    await (await this.person)[Symbol.asyncDispose]();
    for (const one of own) await end(one);
  }

  #identities(): ReadonlyMap<string, Identity> {
    return this.#options.app.loaded().others?.identities ?? new Map();
  }

  #open({ name, token }: Identity): Promise<Own> {
    const { open, replica } = this.#options;
    const opened = open(name).then(async (app) => {
      app.watch();
      return { token, app, face: await faceOf(app, { identity: token, replica }) };
    });
    this.#own.set(name, opened);
    opened.catch(() => this.#own.delete(name));
    return opened;
  }

  /** Returns those that were opened. */
  async #opened(): Promise<readonly Own[]> {
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
      }).catch((error) => this.#options.app.log.warn(`${error}`));
    }
  }
}

/** Answers with the gateway of a PML. */
class AppFaceHost implements FaceHost {
  readonly #app: App;
  readonly #gateway: Gateway;

  constructor(app: App, gateway: Gateway) {
    this.#app = app;
    this.#gateway = gateway;
  }

  connect(...client: Parameters<Gateway["connect"]>): Connection {
    return this.#gateway.connect(...client);
  }

  hello(isModern: boolean): Hello {
    return this.#app.hello(isModern);
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

async function faceOf(
  app: App,
  { identity, replica }: Pick<FacesOptions, "replica"> & { readonly identity: string | null },
): Promise<HttpFace> {
  const gateway = await app.gateway();
  const party = { identity, prefix: replica?.prefix ?? "" };
  const face = new HttpFace(new AppFaceHost(app, gateway), endpointLimits(app), party);
  gateway.clients.streams = face;
  gateway.replica = replica?.for(identity, {
    questions: async () => (await app.callPath()).approvals,
    look: lookOf(app),
  });
  return face;
}

/**
 * Returns a function that reads the configuration again if its files changed. The system does not
 * report changes by another machine on a shared folder.
 */
function lookOf({ policy, closing, log }: App): () => void {
  return () => {
    if (closing.aborted || policy.isCurrent()) return;
    policy.refresh().catch((error) => log.warn(`${error}`));
  };
}

/** Returns the limits of an HTTP endpoint. */
export function endpointLimits(app: App): FaceLimits {
  const { connections, inputBytes, queuedBytes } = app.config().limits;
  return { connections, inputBytes, queuedBytes };
}

async function end({ face, app }: Own): Promise<void> {
  await face[Symbol.asyncDispose]();
  await app[Symbol.asyncDispose]();
}

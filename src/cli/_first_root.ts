/**
 * Chooses the workspace if the client started PML outside of a project: the first root that the client
 * offers.
 *
 * @module
 */

import { messageOf } from "../core/errors.ts";
import { fileURLToPath } from "node:url";
import type { App } from "../app/app.ts";
import type { Environment } from "../config/env.ts";
import { projectFolder } from "../config/own_folder.ts";
import { type JsonObject, listOf, objectOf, textOf } from "../core/json.ts";
import type { ConnectionFactory } from "../protocol/connection.ts";
import { settlesWithin } from "../io/waiting.ts";
import type { RootsReceiver } from "../protocol/server.ts";

/** How long calls wait for the client's roots, in milliseconds. */
const ROOTS_MS = 2_000;

/** Asks one client for its roots, once. */
export class FirstRoot implements Disposable {
  readonly #app: App;
  readonly #chosen = Promise.withResolvers<void>();
  #isChosen = false;
  #isMoving = false;

  /** Makes all calls of the app wait for the choice. */
  constructor(app: App) {
    this.#app = app;
    app.ready = this.#chosen.promise;
  }

  /** Uses the default folder if the client has no roots, or does not send them in time. */
  takeCapabilities({ roots }: { readonly roots?: unknown }): void {
    if (roots === undefined) this.#finish();
    else {void settlesWithin(this.#chosen.promise, ROOTS_MS).then(() =>
        this.#isMoving || this.#finish()
      );}
  }

  /**
   * Wraps the connections of a gateway. A client of the stateless revision gets the default folder at
   * once.
   */
  wrapConnections(connections: ConnectionFactory): ConnectionFactory {
    return {
      ...connections,
      connect: (peer, isStateless, owner) => {
        // In the stateless revision, PML can ask a client only within a call.
        if (isStateless) this.#finish();
        return connections.connect(peer, isStateless, owner);
      },
    };
  }

  /** Wraps the receiver of the roots: it also requests the roots after the handshake. */
  wrapReceiver(receiver: RootsReceiver): RootsReceiver {
    let ask: () => Promise<JsonObject | undefined> = () => Promise.resolve(undefined);
    return {
      connect: (handler) => receiver.connect(ask = handler),
      onChanged: () => receiver.onChanged(),
      onInitialized: () => void this.#choose(ask),
    };
  }

  /** Ends the waiting of all calls. */
  [Symbol.dispose](): void {
    this.#isChosen = true;
    this.#chosen.resolve();
  }

  async #choose(ask: () => Promise<JsonObject | undefined>): Promise<void> {
    // The default folder was chosen already.
    if (this.#isChosen) return;
    const { environment } = this.#app.loaded();
    try {
      const roots = listOf((await ask())?.roots);
      const [folder] = roots.flatMap((root) =>
        findFolder(textOf(objectOf(root).uri), environment) ?? []
      );
      if (folder === undefined || this.#isChosen) return;
      // From here on, calls wait until the move to the folder has ended.
      this.#isMoving = true;
      await this.#app.policy.moveTo(folder);
    } catch (error) {
      this.#app.log.debug(`Cannot use the roots of the client: ${messageOf(error)}`);
    } finally {
      this.#finish();
    }
  }

  /** Loads the servers of registries that the user approved in this workspace. */
  async #loadRegistries(): Promise<void> {
    // Each call reports a broken lock, so the start only logs it.
    await this.#app.registries().catch((error) => this.#app.log.warn(error.message));
  }

  /** Ends the choice with the present workspace. */
  #finish(): void {
    if (this.#isChosen) return;
    this.#isChosen = true;
    void this.#loadRegistries().then(this.#chosen.resolve);
  }
}

function findFolder(uri: string, environment: Environment): string | undefined {
  try {
    return projectFolder(fileURLToPath(uri), environment);
  } catch {
    return undefined; // a root need not be the address of a file
  }
}

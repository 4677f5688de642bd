/**
 * Chooses the workspace for a client that started PML in no project: the first root that it offers.
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
import { soon } from "../io/waiting.ts";
import type { RootsReceiver } from "../protocol/server.ts";

/** How long calls wait for the client's roots, in milliseconds. */
const ROOTS_MS = 2_000;

/** Asks one client for its roots, once. */
export class FirstRoot implements Disposable {
  readonly #app: App;
  readonly #chosen = Promise.withResolvers<void>();
  #isChosen = false;
  #isMoving = false;

  /** Has all calls of the app wait for the choice. */
  constructor(app: App) {
    this.#app = app;
    app.ready = this.#chosen.promise;
  }

  /** Takes the capabilities of the client. A client without roots gets PML's own folder. */
  takeCapabilities({ roots }: { readonly roots?: unknown }): void {
    if (roots === undefined) this.#keep();
    else void soon(this.#chosen.promise, ROOTS_MS).then(() => this.#isMoving || this.#keep());
  }

  /** Wraps a gateway: a client without roots gets the default folder at once. */
  wrapping(connections: ConnectionFactory): ConnectionFactory {
    return {
      ...connections,
      connect: (peer, isStateless, party) => {
        // In the stateless revision, a client can be asked only within a call.
        if (isStateless) this.#keep();
        return connections.connect(peer, isStateless, party);
      },
    };
  }

  /** Returns the receiver of the roots, which asks for them after the handshake. */
  receiving(other: RootsReceiver): RootsReceiver {
    let ask: () => Promise<JsonObject | undefined> = () => Promise.resolve(undefined);
    return {
      connect: (handler) => other.connect(ask = handler),
      changed: () => other.changed(),
      initialized: () => void this.#choose(ask),
    };
  }

  /** Lets nothing wait any longer. */
  [Symbol.dispose](): void {
    this.#isChosen = true;
    this.#chosen.resolve();
  }

  async #choose(ask: () => Promise<JsonObject | undefined>): Promise<void> {
    // A client without roots has got its folder already.
    if (this.#isChosen) return;
    const { environment } = this.#app.loaded();
    try {
      const roots = listOf((await ask())?.roots);
      const [folder] = roots.flatMap((root) =>
        folderOf(textOf(objectOf(root).uri), environment) ?? []
      );
      if (folder === undefined || this.#isChosen) return;
      // Calls wait until the move has ended: half of it is no workspace.
      this.#isMoving = true;
      await this.#app.policy.moveTo(folder);
    } catch (error) {
      this.#app.log.debug(`Cannot use the roots of the client: ${messageOf(error)}`);
    } finally {
      this.#keep();
    }
  }

  /** Loads the servers of registries that the user approved in this workspace. */
  async #takeUp(): Promise<void> {
    // Each call reports a broken lock.
    await this.#app.registries().catch((error) => this.#app.log.warn(error.message));
  }

  #keep(): void {
    if (this.#isChosen) return;
    this.#isChosen = true;
    void this.#takeUp().then(this.#chosen.resolve);
  }
}

function folderOf(uri: string, environment: Environment): string | undefined {
  try {
    return projectFolder(fileURLToPath(uri), environment);
  } catch {
    return undefined; // a root may be something else than a file
  }
}

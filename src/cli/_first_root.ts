/**
 * Chooses the workspace for a client that started PML in no project: the first root that it offers.
 *
 * @module
 */

import type { Server } from "@modelcontextprotocol/server";
import { fileURLToPath } from "node:url";
import type { App } from "../app/app.ts";
import type { Environment } from "../config/env.ts";
import { projectFolder } from "../config/own_folder.ts";
import type { Face } from "../gateway/connection.ts";
import { soon } from "../io/waiting.ts";

/** How long calls wait for the client's roots, in milliseconds. */
const ROOTS_MS = 2_000;

/** Asks one client for its roots, once. */
export class FirstRoot implements Disposable {
  readonly #app: App;
  readonly #chosen = Promise.withResolvers<void>();
  #isChosen = false;

  /** Has all calls of the app wait for the choice. */
  constructor(app: App) {
    this.#app = app;
    app.ready = this.#chosen.promise;
  }

  /** Takes the capabilities of the client. A client without roots gets PML's own folder. */
  takeCapabilities({ roots }: { readonly roots?: unknown }): void {
    if (roots === undefined) this.#keep();
    else void soon(this.#chosen.promise, ROOTS_MS).then(() => this.#keep());
  }

  /** Returns a face whose servers ask the client as soon as it can be asked. */
  asking({ connect, factory }: Face): Face {
    return {
      connect,
      factory: async (...about) => {
        const server = await factory(...about);
        // In the newest revision, a client can be asked only within a call.
        if (about[0].era === "modern") this.#keep();
        else server.oninitialized = () => void this.#ask(server);
        return server;
      },
    };
  }

  /** Lets nothing wait any longer. */
  [Symbol.dispose](): void {
    this.#isChosen = true;
    this.#chosen.resolve();
  }

  async #ask(server: Server): Promise<void> {
    const { environment } = this.#app.loaded();
    try {
      if (server.getClientCapabilities()?.roots === undefined) return;
      const { roots } = await server.listRoots(undefined, { timeout: ROOTS_MS });
      const [folder] = roots.flatMap(({ uri }) => folderOf(uri, environment) ?? []);
      if (folder !== undefined && !this.#isChosen) await this.#app.policy.moveTo(folder);
    } catch (error) {
      this.#app.log.debug(`Cannot ask the client for its roots: ${error}`);
    } finally {
      this.#keep();
    }
  }

  /** Takes up what the person approved of registries in this workspace before. */
  async #takeUp(): Promise<void> {
    // A broken lock is told by each call.
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

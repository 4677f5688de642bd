/**
 * Starts the stdio servers that the user defines.
 *
 * @module
 */

import type { ProgramDefinition } from "../kind.ts";
import { memoized } from "../../core/memo.ts";
import type { UpstreamServer } from "../client/upstream_server.ts";
import type { Launch, NamedPackage, NewestPackage, ServerScripts } from "./_launch.ts";
import type { InstalledPackage } from "./install/installs.ts";
import type { SpareKeeper } from "../../sandbox/process.ts";
import { ServerLog } from "../server_log.ts";
import { StdioRevisions } from "./_revisions.ts";
import type { ProgramHost, StdioValues } from "./program_host.ts";

/** The owner of the process that waits for the first program. `App` implements it. */
export interface SpareOwner {
  /** The keeper; undefined if there is none. */
  readonly spare: SpareKeeper | undefined;
}

/**
 * The pins of packages. They are looked up by the definition that is started, because another
 * server may have its name by then.
 */
export interface PackagePins {
  /** Returns the pinned version of a server's package. */
  versionOf(own: ProgramDefinition): Promise<string | undefined>;
  /** Throws if the installed package is not the pinned one. The server is then not started. */
  check(own: ProgramDefinition, installed: InstalledPackage): Promise<void>;
}

export type { NewestPackage, ServerScripts };

/** Starts servers. */
export class StdioServers {
  /**
   * Returns a server: the same one for the same values. `DefinitionValues.stdio` returns the same
   * object as long as no value changes.
   */
  readonly of: (server: StdioValues) => UpstreamServer = memoized((server) =>
    this.#serverOf(server)
  );
  readonly #host: ProgramHost;
  #launch: Launch | undefined;

  /** Starts nothing yet. */
  constructor(host: ProgramHost) {
    this.#host = host;
  }

  /** Loads the code that starts programs; starts none. */
  async prepare(closing: AbortSignal): Promise<void> {
    await this.#loadLaunch(closing);
  }

  /**
   * Installs the package of a server, and returns its packages with install scripts that did not
   * run.
   */
  async scriptsOf(server: StdioValues, closing: AbortSignal): Promise<ServerScripts> {
    return await (await this.#loadLaunch(closing)).scriptsOf(server);
  }

  /** Returns the names of those servers whose command installs a package. */
  async packaged(
    servers: readonly ProgramDefinition[],
    closing: AbortSignal,
  ): Promise<readonly string[]> {
    return (await this.#loadLaunch(closing)).packaged(servers);
  }

  /** Looks up the newest version of a server's package; undefined if npm has no such package. */
  async newestOf(server: NamedPackage, closing: AbortSignal): Promise<NewestPackage | undefined> {
    return await (await this.#loadLaunch(closing)).newestOf(server);
  }

  /** Loads the code that finds and installs programs, which calls of modules do not need. */
  async #loadLaunch(closing: AbortSignal): Promise<Launch> {
    const { Launch } = await import("./_launch.ts");
    return this.#launch ??= new Launch(this.#host, closing);
  }

  #serverOf(server: StdioValues): UpstreamServer {
    const host = this.#host;
    const { name, tools, definition, trial, confine } = server;
    const key = JSON.stringify(server);
    return {
      name,
      tools,
      definition,
      // A trial needs a new start.
      isKept: trial === undefined,
      // Other grants make another server.
      version: () => key + (confine ? JSON.stringify(host.grants(name) ?? null) : ""),
      prepare: async (closing) => {
        const launched = await (await this.#loadLaunch(closing)).programOf(server);
        const { StdioWire } = await import("./_launch.ts");
        return (events) => {
          const { home } = host;
          const log = new ServerLog(home, name);
          const revisions = trial === undefined ? new StdioRevisions(home, server) : undefined;
          return new StdioWire({ name, launched, log: log, revisions }, host, events);
        };
      },
    };
  }
}

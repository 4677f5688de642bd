/**
 * Starts the stdio servers that a person defines.
 *
 * @module
 */

import type { ProgramDefinition } from "../kind.ts";
import { memoized } from "../../core/memo.ts";
import type { Room } from "../../io/backlog.ts";
import type { StartProgress } from "../client/start_progress.ts";
import type { UpstreamServer } from "../client/upstream_server.ts";
import type { Grants } from "../../policy/grants.ts";
import type { Groups, OsLayerChoice } from "../../sandbox/sandbox.ts";
import type { Confinement } from "./_confined.ts";
import type { Launch, NamedPackage, NewestPackage, ServerScripts } from "./_launch.ts";
import type { InstalledPackage } from "./install/installs.ts";
import type { SpareKeeper } from "../../sandbox/process.ts";
import type { Trial } from "./learn.ts";
import { ServerLog } from "./server_log.ts";
import { StdioRevisions } from "./_revisions.ts";
import type { WireLimits } from "./stdio_wire.ts";

/** The values that a server is started with. Variables are replaced by their values. */
export interface StdioValues {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Whether it starts in whatever workspace is open, though no file of that defines it. */
  readonly isGuest: boolean;
  /** Whether it runs under Deno with permissions. */
  readonly confine: boolean;
  /** The only tools that may be used, if they are named. */
  readonly tools: readonly string[] | undefined;
  /** Its definition as it was written, without the values of variables. */
  readonly definition: ProgramDefinition;
  /** The trial, if the server is being tried: it is confined to the trial's grants. */
  readonly trial?: Trial | undefined;
}

/** Has the keeper that waits for the first program. `App` is one. */
export interface SpareOwner {
  /** The keeper; undefined if there is none. */
  readonly spare: SpareKeeper | undefined;
}

/** The machine that starts servers. Its values are read at each start. */
export interface ProgramHost extends SpareOwner {
  /** The PML home. */
  readonly home: string;
  readonly workspace: string;
  readonly protection: Confinement["protection"];
  /** The person's certificates, which confined servers may read. */
  readonly certificates: readonly string[];
  /** The environment of every server, with PATH. */
  readonly serverEnvironment: Readonly<Record<string, string>>;
  /** The variables that servers in containers get as well. */
  readonly containerEnvironment: Readonly<Record<string, string>>;
  /** The layer that should confine install scripts. */
  readonly osLayer: OsLayerChoice;
  readonly limits: WireLimits;
  /** Records process groups, so that they end with PML, however PML ends. */
  readonly groups: Groups;
  /** Pauses the readers of servers if too much waits for the client. */
  readonly room?: Room | undefined;
  /** Reports installations to the calls that wait for them. */
  readonly starts: StartProgress;
  readonly packages?: PackagePins;
  /** Returns the grants of a server. */
  grants(server: string): Grants | undefined;
  /** Returns additional variables of installers: how the person's registry is reached. */
  installEnvironment(): Readonly<Record<string, string>>;
  /** Removes secrets from texts of a server that are not messages. */
  withoutSecrets(text: string): string;
  /** Logs a text of a server or an installer. */
  logServer(server: string, level: "debug" | "info" | "warn", text: string): void;
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
  /** Returns the way to a server. Equal values give the same object. */
  readonly of: (server: StdioValues) => UpstreamServer = memoized((server) => this.#made(server));
  readonly #host: ProgramHost;
  #launch: Launch | undefined;

  /** Starts nothing yet. */
  constructor(host: ProgramHost) {
    this.#host = host;
  }

  /** Loads the code that starts programs; starts none. */
  async prepare(closing: AbortSignal): Promise<void> {
    await this.#launching(closing);
  }

  /**
   * Installs the package of a server, and returns its packages with install scripts that did not
   * run.
   */
  async scriptsOf(server: StdioValues, closing: AbortSignal): Promise<ServerScripts> {
    return await (await this.#launching(closing)).scriptsOf(server);
  }

  /** Returns the names of those servers whose command installs a package. */
  async packaged(
    servers: readonly ProgramDefinition[],
    closing: AbortSignal,
  ): Promise<readonly string[]> {
    return (await this.#launching(closing)).packaged(servers);
  }

  /** Looks up the newest version of a server's package; undefined if npm has no such package. */
  async newestOf(server: NamedPackage, closing: AbortSignal): Promise<NewestPackage | undefined> {
    return await (await this.#launching(closing)).newestOf(server);
  }

  /** Loads what finds and installs programs, which calls of modules do not need. */
  async #launching(closing: AbortSignal): Promise<Launch> {
    const { Launch } = await import("./_launch.ts");
    return this.#launch ??= new Launch(this.#host, closing);
  }

  #made(server: StdioValues): UpstreamServer {
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
      way: async (closing) => {
        const launched = await (await this.#launching(closing)).programOf(server);
        const { StdioWire } = await import("./_launch.ts");
        return (ends) => {
          const { home } = host;
          const kept = new ServerLog(home, name);
          const revisions = trial === undefined ? new StdioRevisions(home, server) : undefined;
          return new StdioWire({ name, launched, kept, revisions }, host, ends);
        };
      },
    };
  }
}

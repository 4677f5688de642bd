/**
 * Starts the stdio servers that a person defines.
 *
 * @module
 */

import type { ProgramDefinition } from "../kind.ts";
import { memoized } from "../../core/memo.ts";
import type { UpstreamsOptions } from "../client/upstreams.ts";
import type { UpstreamServer } from "../client/upstream_server.ts";
import type { Grants } from "../../policy/grants.ts";
import type { OsLayerChoice } from "../../sandbox/sandbox.ts";
import type { Confinement } from "./_confined.ts";
import type { Launch, NamedPackage, NewestPackage, ServerScripts } from "./_launch.ts";
import type { InstalledPackage } from "./install/installs.ts";
import type { SpareKeeper } from "../../sandbox/process.ts";
import type { Trial } from "./learn.ts";
import { ServerLog } from "./server_log.ts";
import { StdioRevisions } from "./_revisions.ts";
import type { StdioWireOptions } from "./stdio_wire.ts";

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

/** The options for starting servers. The functions are called at each start. */
export interface StdioServersOptions
  extends
    Pick<UpstreamsOptions, "workspace" | "home" | "onLog" | "starts" | "room" | "withoutSecrets"> {
  readonly grants: (server: string) => Grants | undefined;
  readonly protection: () => Confinement["protection"];
  /** The person's certificates, which confined servers may read. */
  readonly certificates: readonly string[];
  /** The environment of every server, with PATH. */
  readonly environment: Readonly<Record<string, string>>;
  /** The variables that servers in containers get as well. */
  readonly containerEnvironment: Readonly<Record<string, string>>;
  /** Returns additional variables of installers: how the person's registry is reached. */
  readonly installEnvironment: () => Readonly<Record<string, string>>;
  /** Returns the layer that should confine install scripts. */
  readonly osLayer: () => OsLayerChoice;
  readonly limits: () => StdioWireOptions["limits"];
  readonly groups: StdioWireOptions["groups"] & { readonly mark: string };
  readonly packages?: PackagePins;
  /** Returns the keeper that waits for the first program, if there is one. */
  readonly spare?: (() => SpareKeeper | undefined) | undefined;
}

/**
 * The pins of packages. They are looked up by the definition that is started, because another
 * server may have its name by then.
 */
export interface PackagePins {
  /** Returns the pinned version of a server's package. */
  readonly versionOf: (own: ProgramDefinition) => Promise<string | undefined>;
  /** Throws if the installed package is not the pinned one. The server is then not started. */
  readonly check: (own: ProgramDefinition, installed: InstalledPackage) => Promise<void>;
}

export type { NewestPackage, ServerScripts };

/** Starts servers. */
export class StdioServers {
  /** Returns the way to a server. Equal values give the same object. */
  readonly of: (server: StdioValues) => UpstreamServer = memoized((server) => this.#made(server));
  readonly #options: StdioServersOptions;
  #launch: Launch | undefined;

  /** Starts nothing yet. */
  constructor(options: StdioServersOptions) {
    this.#options = options;
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
    return this.#launch ??= new Launch(this.#options, closing);
  }

  #made(server: StdioValues): UpstreamServer {
    const { grants, groups, home, limits, room, spare, withoutSecrets } = this.#options;
    const { name, tools, definition, trial, confine } = server;
    const key = JSON.stringify(server);
    return {
      name,
      tools,
      definition,
      // A trial needs a new start.
      isKept: trial === undefined,
      // Other grants make another server.
      version: () => key + (confine ? JSON.stringify(grants(name) ?? null) : ""),
      way: async (closing) => {
        const own = { name, groups, room, withoutSecrets };
        const launched = await (await this.#launching(closing)).programOf(server);
        const { StdioWire } = await import("./_launch.ts");
        return (ends) => {
          const kept = new ServerLog(home, name);
          const revisions = trial === undefined ? new StdioRevisions(home, server) : undefined;
          return new StdioWire(
            { ...own, ...launched, spare: spare?.(), kept, revisions, limits: limits() },
            ends,
          );
        };
      },
    };
  }
}

/**
 * The stdio servers that a person defines: what they are started from, and the way to each.
 *
 * @module
 */

import type { StdioDefinition } from "../config/servers.ts";
import { memoized } from "../core/memo.ts";
import type { UpstreamServer, UpstreamsOptions } from "../mcp_client/upstreams.ts";
import type { Grants } from "../permissions/grants.ts";
import type { OsLayerChoice } from "../sandbox/sandbox.ts";
import type { Confinement } from "./_confined.ts";
import { Launch, type ServerScripts } from "./_launch.ts";
import type { InstalledPackage } from "./installs.ts";
import type { Trial } from "./learn.ts";
import { StdioWire, type StdioWireOptions } from "./stdio_wire.ts";

/** A server as it is started; values are filled in. */
export interface StdioValues {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Whether it runs under Deno with permissions. */
  readonly confine: boolean;
  /** The only tools of it that count, where they are named. */
  readonly tools: readonly string[] | undefined;
  /** Its definition as it was written: without the values of variables. */
  readonly definition: StdioDefinition;
  /** Where it is tried out: confined, with these grants and no others. */
  readonly trial?: Trial | undefined;
}

/** What starting servers needs from outside; functions are asked at each start. */
export interface StdioServersOptions
  extends
    Pick<UpstreamsOptions, "workspace" | "home" | "onLog" | "starts" | "room" | "withoutSecrets"> {
  readonly grants: (server: string) => Grants | undefined;
  readonly protection: Confinement["protection"];
  /** The person's certificates, which confined servers may read. */
  readonly certificates: readonly string[];
  /** What every server finds in its environment, PATH among it. */
  readonly environment: Readonly<Record<string, string>>;
  /** What installers find there beside that: how the registry of the person is reached. */
  readonly installEnvironment: Readonly<Record<string, string>>;
  /** What install scripts are confined by, where the system has it. */
  readonly osLayer: () => OsLayerChoice;
  readonly limits: () => StdioWireOptions["limits"];
  readonly groups: StdioWireOptions["groups"] & { readonly mark: string };
  readonly packages?: PackagePins;
}

/** What is pinned of packages: of the definition that is started, whatever has its name by then. */
export interface PackagePins {
  /** Gives the exact version that is pinned for a server. */
  readonly versionOf: (own: StdioDefinition) => Promise<string | undefined>;
  /** Throws where what is installed is not what was pinned: then it is not started. */
  readonly check: (own: StdioDefinition, installed: InstalledPackage) => Promise<void>;
}

export type { ServerScripts };

/** Starts servers. */
export class StdioServers {
  /** Gives the way to a server: the same object for the same one. */
  readonly of: (server: StdioValues) => UpstreamServer = memoized((server) => this.#made(server));
  readonly #options: StdioServersOptions;
  #launch: Launch | undefined;

  /** Takes what they stand in; nothing is started yet. */
  constructor(options: StdioServersOptions) {
    this.#options = options;
  }

  /** Installs the package of a server, and gives what of it has install scripts that did not run. */
  async scriptsOf(server: StdioValues, closing: AbortSignal): Promise<ServerScripts> {
    return await this.#launching(closing).scriptsOf(server);
  }

  #launching(closing: AbortSignal): Launch {
    return this.#launch ??= new Launch(this.#options, closing);
  }

  #made(server: StdioValues): UpstreamServer {
    const { grants, groups, limits, room, withoutSecrets } = this.#options;
    const { name, tools, definition, trial, confine } = server;
    const key = JSON.stringify(server);
    return {
      name,
      tools,
      definition,
      // A trial is there to start it.
      isKept: trial === undefined,
      // What holds it is part of what it is.
      version: () => key + (confine ? JSON.stringify(grants(name) ?? null) : ""),
      way: async (closing) => {
        const own = { name, groups, room, withoutSecrets };
        const launched = await this.#launching(closing).programOf(server);
        return (ends) => new StdioWire({ ...own, ...launched, limits: limits() }, ends);
      },
    };
  }
}

/**
 * The interface through which programs use the rest of PML, and the values to start a program.
 *
 * @module
 */

import type { ProgramDefinition } from "../kind.ts";
import type { Trial } from "./learn.ts";
import type { InstalledPackage } from "./install/installs.ts";
import type { Confinement } from "./_confined_access.ts";
import type { Groups, OsLayerChoice } from "../../sandbox/sandbox.ts";
import type { SpareKeeper } from "../../sandbox/process.ts";
import type { WaitForMemory } from "../../io/backlog.ts";
import type { StartProgress } from "../client/start_progress.ts";
import type { ServerGrants } from "../../policy/grants.ts";

/** The values with which a server is started. Variables such as `${NAME}` are already replaced. */
export interface StdioValues {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Whether the server starts in the workspace, although no file of the workspace defines it. */
  readonly isGuest: boolean;
  /** Whether the server runs confined: under Deno, with limited permissions. */
  readonly confine: boolean;
  /** The only tools that may be used; undefined if all may. */
  readonly tools: readonly string[] | undefined;
  /** The definition as it was written, with variables instead of their values. */
  readonly definition: ProgramDefinition;
  /**
   * The trial of `pml learn`, if there is one: the server is confined to the grants of the trial.
   */
  readonly trial?: Trial | undefined;
}

/** The limits of the output of a process, in bytes. */
export interface WireLimits {
  readonly lineBytes: number;
  readonly resultBytes: number;
  readonly stderrBytes: number;
}

/**
 * The owner of a supervisor process that PML starts in advance for the first program. `App`
 * implements it.
 */
export interface SpareOwner {
  /** The start of the value of PML_RUN in all programs of this PML. */
  readonly runMark: string;
  /** The supervisor process that waits for a program; undefined if there is none. */
  readonly spare: SpareKeeper | undefined;
}

/**
 * The pins of packages. The methods take the definition that is started, not its name, because the
 * name may belong to another server in the meantime.
 */
export interface PackagePins {
  /** Returns the pinned version of a server's package. */
  versionOf(definition: ProgramDefinition): Promise<string | undefined>;
  /** Throws if the installed package is not the pinned one, so that the server is not started. */
  check(definition: ProgramDefinition, installed: InstalledPackage): Promise<void>;
}

/** The services of PML that start programs. Their values are read at each start. */
export interface ProgramHost extends SpareOwner {
  /** The PML home. */
  readonly home: string;
  readonly workspace: string;
  readonly protection: Confinement["protection"];
  /** The user's certificates, which confined servers may read. */
  readonly certificates: readonly string[];
  /** The environment of every server, with PATH. */
  readonly serverEnvironment: Readonly<Record<string, string>>;
  /** The variables that servers in containers get as well. */
  readonly containerEnvironment: Readonly<Record<string, string>>;
  /** The layer that should confine install scripts. */
  readonly osLayer: OsLayerChoice;
  readonly limits: WireLimits;
  /** Records process groups, so that they end with PML, even if PML is killed. */
  readonly groups: Groups;
  /** Waits while too much data waits for the client, so that servers are read more slowly. */
  readonly waitForMemory?: WaitForMemory | undefined;
  /** Reports installations to the calls that wait for them. */
  readonly starts: StartProgress;
  readonly packages?: PackagePins;
  /** Returns the grants of a server. */
  grants(server: string): ServerGrants | undefined;
  /** Returns additional variables with which installers reach the user's registry. */
  installEnvironment(): Readonly<Record<string, string>>;
  /** Removes secrets from a text of a server that is not an MCP message, such as its output. */
  withoutSecrets(text: string): string;
  /** Logs a text of a server or an installer. */
  logServer(server: string, level: "debug" | "info" | "warn", text: string): void;
}

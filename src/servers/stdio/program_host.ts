/**
 * The host of programs, and a program with its values.
 *
 * @module
 */

import type { ProgramDefinition } from "../kind.ts";
import type { Trial } from "./learn.ts";
import type { PackagePins, SpareOwner } from "./stdio_servers.ts";
import type { Confinement } from "./_confined.ts";
import type { Groups, OsLayerChoice } from "../../sandbox/sandbox.ts";
import type { WireLimits } from "./stdio_wire.ts";
import type { WaitForMemory } from "../../io/backlog.ts";
import type { StartProgress } from "../client/start_progress.ts";
import type { ServerGrants } from "../../policy/grants.ts";

/** The values that a server is started with. Variables are replaced by their values. */
export interface StdioValues {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Whether it starts in the open workspace although no file of that workspace defines it. */
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

/** The machine that starts servers. Its values are read at each start. */
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
  /** Records process groups, so that they end with PML, however PML ends. */
  readonly groups: Groups;
  /** Pauses the readers of servers if too much waits for the client. */
  readonly room?: WaitForMemory | undefined;
  /** Reports installations to the calls that wait for them. */
  readonly starts: StartProgress;
  readonly packages?: PackagePins;
  /** Returns the grants of a server. */
  grants(server: string): ServerGrants | undefined;
  /** Returns additional variables of installers: how the user's registry is reached. */
  installEnvironment(): Readonly<Record<string, string>>;
  /** Removes secrets from texts of a server that are not messages. */
  withoutSecrets(text: string): string;
  /** Logs a text of a server or an installer. */
  logServer(server: string, level: "debug" | "info" | "warn", text: string): void;
}

/**
 * The interface through which modules use the rest of PML.
 *
 * @module
 */

import type { Groups, LogEntry, OsLayerChoice, Protection } from "../../sandbox/sandbox.ts";

import type { SandboxLimits } from "../../sandbox/sandbox.ts";
import type { PoolLimits } from "../../io/pool.ts";

/** The services of PML that the runner of modules uses. Its values are read at each use. */
export interface ModuleHost {
  /** The PML home. */
  readonly home: string;
  readonly workspace: string;
  readonly protection: Omit<Protection, "granted">;
  /** The environment of the programs that modules run. */
  readonly programEnvironment: Readonly<Record<string, string>>;
  readonly limits: ModuleLimits;
  /** The layer that confines modules in addition to Deno. */
  readonly osLayer: OsLayerChoice;
  /** Records process groups, so that they end with PML, even if PML is killed. */
  readonly groups: Groups;
  /** Returns the value of a granted variable. */
  variable(name: string): string | undefined;
  /** Writes a log entry of a module. */
  logModule(server: string, entry: LogEntry): void;
}

/** The limits of modules. */
export interface ModuleLimits extends SandboxLimits, PoolLimits {
  /** The maximum size of a module, in bytes. */
  readonly moduleBytes: number;
  /** The maximum number of children at the same time. */
  readonly children: number;
}

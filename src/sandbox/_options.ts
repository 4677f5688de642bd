/**
 * The options and limits of a sandbox.
 *
 * @module
 */

import type { LogEntry } from "./_meter.ts";
import type { Protection, ResultSchemas } from "./boot/message.ts";

/** The limits of one child. */
export interface SandboxLimits {
  readonly heapMb: number;
  readonly rssMb: number;
  /** The maximum number of bytes that one call may log, print and report as progress. */
  readonly frameBytes: number;
  /** The maximum number of messages that one call may log, print and report as progress. */
  readonly frames: number;
  readonly resultBytes: number;
  /** The maximum number of bytes that one child may write to files. */
  readonly writeBytes: number;
  /** How long a module may take to load, in milliseconds. */
  readonly startMs: number;
}

/**
 * The options of a child before it has a module. Children with equal options can replace each
 * other.
 */
export interface ChildOptions {
  /** The real path that relative paths start from. */
  readonly workspace: string;
  /** Absolute real folders and files that the module may read. */
  readonly read: readonly string[];
  /** Absolute real folders and files that the module may write. */
  readonly write: readonly string[];
  /** Hosts as `name:port`, or `*` for every public host. IP addresses need their own entry. */
  readonly net: readonly string[];
  /** Names of programs, or `*` for any. */
  readonly run: readonly string[];
  /** Whether programs may write only where the module may write, if the system can enforce it. */
  readonly writesOnly?: boolean;
  /** The variables that the module may read, by name; null for a variable that is not set. */
  readonly env: Readonly<Record<string, string | null>>;
  /** The environment of programs. Its `PATH` is also used to find them. */
  readonly environment: Readonly<Record<string, string>>;
  readonly protection: Protection;
  /** The PML home. It contains private folders and lock files; modules cannot see it. */
  readonly home: string;
  readonly limits: SandboxLimits;
}

/** The module that a child loads, and the options of the load. */
export interface ModuleOptions {
  /** The server's name, for messages. */
  readonly name: string;
  /** The path of the module, for messages. */
  readonly file?: string | undefined;
  /** The code of the module, TypeScript or JavaScript. The caller has checked its hash. */
  readonly code: Uint8Array;
  /** The schemas of its structured results, which are checked in the child. */
  readonly results?: ResultSchemas | undefined;
  readonly onLog: (entry: LogEntry) => void;
  /** Stops the load when it aborts. */
  readonly signal?: AbortSignal;
}

/** Records the process groups that must not outlive PML. */
export interface Groups {
  /**
   * The start of the value of the variable `PML_RUN` of each child and of all processes that the
   * child starts. PML finds processes by this value.
   */
  readonly mark: string;
  /** Adds a group. */
  add(pid: number): void;
  /** Removes a group that has ended. */
  remove(pid: number): void;
}

/**
 * What a sandbox is made of, and what it may use.
 *
 * @module
 */

import type { LogEntry } from "./_meter.ts";
import type { Layer } from "./_os_layer.ts";
import type { Protection } from "./boot/message.ts";

/** What one child may use. */
export interface SandboxLimits {
  readonly heapMb: number;
  readonly rssMb: number;
  /** The most bytes that one call may log, print and report. */
  readonly frameBytes: number;
  /** The most messages that one call may log, print and report. */
  readonly frames: number;
  readonly resultBytes: number;
  /** How much one child may write to files. */
  readonly writeBytes: number;
  /** How long a module may take to load. */
  readonly startMs: number;
}

/** The limits of a child where nothing else is said. */
export const SANDBOX_LIMITS: SandboxLimits = {
  heapMb: 256,
  rssMb: 512,
  frameBytes: 64 * 1024 * 1024,
  frames: 10_000,
  resultBytes: 32 * 1024 * 1024,
  writeBytes: 4 * 1024 ** 3,
  startMs: 30_000,
};

/** What a child is made of, before it has a module. Two children of equal options are alike. */
export interface ChildOptions {
  /** The real path that relative paths start from. */
  readonly workspace: string;
  /** Absolute real folders and files that the module may read. */
  readonly read: readonly string[];
  /** Absolute real folders and files that the module may write. */
  readonly write: readonly string[];
  /** Hosts as `name:port`, or `*` for every public one; addresses stand alone. */
  readonly net: readonly string[];
  /** Names of programs, or `*` for any. */
  readonly run: readonly string[];
  /** Whether programs write where the module may write, and nowhere else, if the system can that. */
  readonly writesOnly?: boolean;
  /** The variables that the module may have; null where one is not set. */
  readonly env: Readonly<Record<string, string | null>>;
  /** What programs find in their environment; `PATH` is also where they are looked for. */
  readonly environment: Readonly<Record<string, string>>;
  readonly protection: Protection;
  /** The PML home; private folders and lock files live under it, and no module sees it. */
  readonly home: string;
  readonly limits: SandboxLimits;
}

/** The module of a child. */
export interface ModuleOptions {
  /** The server's name, for messages. */
  readonly name: string;
  /** The module, TypeScript or JavaScript, whose hash the caller has checked. */
  readonly code: Uint8Array;
  readonly onLog: (entry: LogEntry) => void;
  /** Gives up the start. */
  readonly signal?: AbortSignal;
}

/** What a sandbox is made of. */
export interface SandboxOptions extends ChildOptions, ModuleOptions {
  /** Is told of process groups, so that they end with PML however it ends. */
  readonly groups?: Groups;
  /** What the system holds the child with; Landlock where there is it, unless said. */
  readonly layer?: Layer;
}

/** Keeps the process groups that must not outlive PML. */
export interface Groups {
  /** Stands in `PML_RUN` of children and of all that they start, wherever it flees. */
  readonly mark: string;
  /** Watches a group. */
  add(pid: number): void;
  /** Lets go of a group that is over. */
  remove(pid: number): void;
}

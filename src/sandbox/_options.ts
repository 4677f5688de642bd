/**
 * What a sandbox is made of, and what it may use.
 *
 * @module
 */

import type { LogEntry } from "./_meter.ts";
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
  /** The most bytes that one child may write to files; `WRITE_BYTES` unless said. */
  readonly writeBytes?: number;
  /** How long a module may take to load. */
  readonly startMs: number;
}

/** What a child may write to files where nothing else is said. */
export const WRITE_BYTES: number = 4 * 1024 ** 3;

/** The limits of a child where nothing else is said. */
export const SANDBOX_LIMITS: SandboxLimits = {
  heapMb: 256,
  rssMb: 512,
  frameBytes: 64 * 1024 * 1024,
  frames: 10_000,
  resultBytes: 32 * 1024 * 1024,
  startMs: 30_000,
};

/** What a sandbox is made of. */
export interface SandboxOptions {
  /** The server's name, for messages. */
  readonly name: string;
  /** The module, TypeScript or JavaScript, whose hash the caller has checked. */
  readonly code: Uint8Array;
  /** The real path that relative paths start from. */
  readonly workspace: string;
  /** Absolute real folders and files that the module may read. */
  readonly read: readonly string[];
  /** Absolute real folders and files that the module may write. */
  readonly write: readonly string[];
  readonly protection: Protection;
  /** The PML home; private folders and lock files live under it, and no module sees it. */
  readonly home: string;
  readonly limits: SandboxLimits;
  readonly onLog: (entry: LogEntry) => void;
  /** `LANG` and `TZ`, if the child is to have them; nothing else is taken. */
  readonly environment?: { readonly LANG?: string; readonly TZ?: string };
  /** Gives up the start. */
  readonly signal?: AbortSignal;
}

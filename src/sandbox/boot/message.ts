/**
 * What the gateway, the host thread and the Worker say to each other.
 *
 * @module
 */

import type { Programs } from "./landlock.ts";

/** Names and places that stay closed inside a grant. */
export interface Protection {
  /** Names (`.git`, `.env*`, `.github/workflows`) that are not written at any depth. */
  readonly writeProtected: readonly string[];
  /** Names that are neither read nor written at any depth. */
  readonly readProtected: readonly string[];
  /** Absolute files and folders that are not written, such as private module files. */
  readonly paths: readonly string[];
  /** Absolute paths that the person's grants name: one that names a protected name opens it. */
  readonly granted: readonly string[];
}

/** Where a module may go. All paths are absolute and real. */
export interface FileScope {
  readonly workspace: string;
  readonly read: readonly string[];
  readonly write: readonly string[];
  readonly protection: Protection;
  /** The PML home: closed to every module. */
  readonly home: string;
  /** A folder of this child alone for temporary files, in the home all the same. */
  readonly temp?: string | undefined;
  /** The largest file that is read in one piece. */
  readonly resultBytes: number;
  /** The most bytes that the child may write to files. */
  readonly writeBytes: number;
}

/** What a module may do beside files; nothing of it without a grant. */
export interface Grants {
  /** Programs: the file of each by its name, or `*` for any that lies on `path`. */
  readonly run: "*" | Readonly<Record<string, string>>;
  /** Absolute folders outside the workspace where programs are looked for, in order. */
  readonly path: readonly string[];
  /** What every program finds in its environment. */
  readonly environment: Readonly<Record<string, string>>;
  /** The names of variables that change how programs run, as a pattern. */
  readonly steering: string;
  /** Hosts as `name:port`; `*` stands for every public one, at port 443. */
  readonly net: readonly string[];
  /** The variables that `host.env` gives; null where one is not set. */
  readonly env: Readonly<Record<string, string | null>>;
}

/** Names that no module uses, as one text for each reason. */
export interface Denied {
  readonly inDeno: Readonly<Record<string, string>>;
  readonly global: Readonly<Record<string, string>>;
}

/** The first line of stdin: what the host thread starts with. No module is named yet. */
export interface Start extends FileScope, Grants {
  /** What every frame begins with; the Worker never sees it. */
  readonly nonce: string;
  readonly lock: string;
  readonly canary: string;
  /** The private folders of the child: its temporary folder and its `DENO_DIR`. */
  readonly own: readonly string[];
  /** What is read of the system, where the child is to confine itself; else it is not to. */
  readonly system?: readonly string[];
  /** What bounds the programs that the module may run. */
  readonly programs?: Programs;
  readonly denied: Denied;
  readonly worker: string;
}

/** An error that crosses a thread or a pipe. */
export interface Failure {
  readonly name: string;
  readonly message: string;
  readonly code?: string;
}

/** What the host thread answers to a request. */
export type Reply =
  | { readonly ok: true; readonly value?: unknown }
  | { readonly ok: false; readonly error: Failure };

/** What the Worker starts with. */
export interface WorkerStart {
  readonly port: MessagePort;
  /** Files that it must not be able to read. */
  readonly closed: readonly string[];
  readonly env: Grants["env"];
  readonly denied: Denied;
  readonly workspace: string;
  readonly resultBytes: number;
  /** Two numbers: what answer is there (0 none, 1 JSON, 2 bytes), and its length. */
  readonly turn: SharedArrayBuffer;
  /** Where the host thread puts answers to synchronous requests; it grows. */
  readonly answer: SharedArrayBuffer;
}

/** What the gateway and the host thread tell the Worker. */
export type ToWorker =
  | { readonly kind: "call"; readonly id: number; readonly fn: string; readonly arguments: unknown }
  | { readonly kind: "cancel"; readonly id: number }
  | { readonly kind: "load"; readonly code: string }
  | { readonly kind: "said"; readonly id: number; readonly value: unknown }
  | { readonly kind: "reply"; readonly id: number; readonly reply: Reply };

/** What the Worker tells the host thread. It is not trusted: the module can send anything. */
export type FromWorker =
  | { readonly kind: "ask"; readonly id: number; readonly op: string; readonly args: unknown[] }
  | { readonly kind: "drop"; readonly id: number }
  | { readonly kind: "frame"; readonly type: string; readonly id: number; readonly json: unknown };

/**
 * The messages between PML, the host thread and the Worker.
 *
 * @module
 */

/** Names and paths that are protected inside a grant. */
export interface Protection {
  /** Names (`.git`, `.env*`, `.github/workflows`) that cannot be written at any depth. */
  readonly writeProtected: readonly string[];
  /** Names that cannot be read or written at any depth. */
  readonly readProtected: readonly string[];
  /**
   * Names that begin with a dot and can be written at the top of a workspace. All other names that
   * begin with a dot are protected there, because no list contains all files that agents and tools
   * read.
   */
  readonly writable: readonly string[];
  /** Absolute files and folders that cannot be written, such as private module files. */
  readonly paths: readonly string[];
  /** Absolute paths of the user's grants. A grant of a protected name opens that name. */
  readonly granted: readonly string[];
}

/** The files that a module may use. All paths are absolute and real. */
export interface FileScope {
  readonly workspace: string;
  readonly read: readonly string[];
  readonly write: readonly string[];
  readonly protection: Protection;
  /** The PML home, which is closed to every module. */
  readonly home: string;
  /** This child's folder for temporary files. It is allowed, although it is in the PML home. */
  readonly temp?: string | undefined;
  /** The largest file that is read in one step, in bytes. */
  readonly resultBytes: number;
  /** The maximum number of bytes that the child may write to files. */
  readonly writeBytes: number;
}

/** The access of a module to programs, hosts and variables. All of it requires a grant. */
export interface HostGrants {
  /** Programs: the file of each by its name, or `*` for any program on `path`. */
  readonly run: "*" | Readonly<Record<string, string>>;
  /** Absolute folders outside the workspace in which PML searches for programs, in order. */
  readonly path: readonly string[];
  /** The extensions of programs; none on systems where the mode of a file makes it a program. */
  readonly endings: readonly string[];
  /** The environment of every program. */
  readonly environment: Readonly<Record<string, string>>;
  /** A pattern for the names of variables that change what programs do. */
  readonly steering: string;
  /** Hosts as `name:port`; `*` means every public host at port 443. */
  readonly net: readonly string[];
  /** The variables that `host.env` returns, by name; null for a variable that is not set. */
  readonly env: Readonly<Record<string, string | null>>;
}

/** Names that no module can use: for each reason, one text with the names. */
export interface Denied {
  readonly inDeno: Readonly<Record<string, string>>;
  readonly global: Readonly<Record<string, string>>;
}

/**
 * The first line of stdin, with the start parameters of the host thread. The module comes later.
 */
export interface HostStart extends FileScope, HostGrants {
  /** The start of every frame. The Worker never sees it. */
  readonly nonce: string;
  readonly lock: string;
  readonly canary: string;
  /** The private folders of the child: its temporary folder and its `DENO_DIR`. */
  readonly privateFolders: readonly string[];
  /**
   * The paths of the system that the child may read. Undefined if the child should not use
   * Landlock.
   */
  readonly system?: readonly string[];
  /** The limits of the programs that the module may run. */
  readonly programs?: ProgramLimits;
  readonly denied: Denied;
  readonly worker: string;
}

/** An error in the form that is sent to another thread or process. */
export interface SentError {
  readonly name: string;
  readonly message: string;
  readonly code?: string;
  /** The line and column in the module, such as `3:7`. */
  readonly at?: string;
}

/** The answer of the host thread to a request. */
export type HostReply =
  | { readonly ok: true; readonly value?: unknown }
  | { readonly ok: false; readonly error: SentError };

/** The first message to the Worker. */
export interface WorkerStart {
  readonly port: MessagePort;
  /** Files that the Worker must not be able to read. */
  readonly closed: readonly string[];
  readonly env: HostGrants["env"];
  readonly denied: Denied;
  readonly workspace: string;
  readonly resultBytes: number;
  /** Two numbers: the kind of the answer (0 none, 1 JSON, 2 bytes) and its length. */
  readonly turn: SharedArrayBuffer;
  /** The memory for answers to synchronous requests; it can grow. */
  readonly answer: SharedArrayBuffer;
}

/** The schemas of the structured results of a module, by the names of its functions. */
export interface ResultSchemas {
  /** The code that checks values against them. */
  readonly code: string;
  readonly schemas: Readonly<Record<string, object>>;
}

/** The messages from PML and the host thread to the Worker. */
export type ToWorker =
  | { readonly kind: "call"; readonly id: number; readonly fn: string; readonly arguments: unknown }
  | { readonly kind: "cancel"; readonly id: number }
  | { readonly kind: "load"; readonly code: string; readonly results?: ResultSchemas | undefined }
  | { readonly kind: "said"; readonly id: number; readonly value: unknown }
  | { readonly kind: "reply"; readonly id: number; readonly reply: HostReply };

/** The answer of PML to the request of the host thread with this id. */
export interface Answered {
  readonly kind: "answered";
  readonly id: number;
  readonly reply: HostReply;
}

/**
 * The messages from the Worker to the host thread. They are not trusted, because the module can
 * send anything.
 */
export type FromWorker =
  | { readonly kind: "ask"; readonly id: number; readonly op: string; readonly args: unknown[] }
  | { readonly kind: "drop"; readonly id: number }
  | { readonly kind: "frame"; readonly type: string; readonly id: number; readonly json: unknown };

/** The limits of a child that may run programs. */
export interface ProgramLimits {
  /** The maximum number of processes and threads of the user. It does not apply to root. */
  readonly processes: number;
  /** Whether programs may write only in the write roots. Otherwise the user's rights apply. */
  readonly writesOnly: boolean;
}

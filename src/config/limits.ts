/**
 * All limits, with their defaults and the range in which a person may set them.
 *
 * @module
 */

const KB = 1024;
const MB = 1024 * KB;
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const DAY = 24 * 60 * MINUTE;

/** Each limit as default, least and most. The end of a name is its unit. */
export const LIMITS: Readonly<Record<LimitName, readonly [number, number, number]>> = {
  /** The time limit of a call. */
  callMs: [10 * MINUTE, 100, DAY],
  /** The time limit of a call that keeps reporting progress, and of a run with all its calls. */
  callMaxMs: [60 * MINUTE, 100, DAY],
  /** How long a question waits for its answer. */
  approvalMs: [10 * MINUTE, SECOND, DAY],
  /** How many connections `pml serve` takes at once. */
  connections: [1024, 1, 65_536],
  /** The size of a request. */
  inputBytes: [8 * MB, KB, 512 * MB],
  /** The size of a call's result, and of all results of a batch. */
  resultBytes: [32 * MB, KB, 512 * MB],
  /** The length of a line on a pipe. */
  lineBytes: [65 * MB, 64 * KB, 1024 * MB],
  /** How much output may wait for the client. Beyond that, PML stops reading from servers. */
  queuedBytes: [64 * MB, 64 * KB, 1024 * MB],
  /** How long a client may read nothing before PML closes its connection. */
  unreadMs: [MINUTE, 100, DAY],
  /** The size of a module's file. */
  moduleBytes: [2 * MB, KB, 64 * MB],
  /** How much a sandbox child may send in one call before it is killed. */
  frameBytes: [64 * MB, 64 * KB, 1024 * MB],
  /** How many messages a sandbox child may send in one call before it is killed. */
  frames: [10_000, 10, 10_000_000],
  /** The heap of a sandbox child. */
  heapMb: [256, 32, 65_536],
  /** The memory of a sandbox child. */
  rssMb: [512, 64, 131_072],
  /** How many calls may run at once. */
  concurrentCalls: [256, 1, 10_000],
  /** How many calls may wait for their turn. */
  queuedCalls: [1024, 0, 100_000],
  /** How many calls one batch may contain. */
  batch: [50, 1, 1000],
  /** How many tasks one plan may contain, those that `for_each` makes included. */
  planTasks: [100, 1, 10_000],
  /** How long code may run. Waiting for its calls and for answers of the user does not count. */
  codeMs: [60 * SECOND, 100, DAY],
  /** How many calls one run of code may make. */
  codeCalls: [200, 1, 100_000],
  /** How many runs may wait for answers of the person at once. */
  waitingRuns: [4, 1, 1000],
  /** How many capabilities may call each other, one inside the other. */
  capabilityDepth: [8, 1, 64],
  /** How much of results that stay outside of answers is kept. */
  keptBytes: [64 * MB, 64 * KB, 1024 * MB],
  /** How long a result that stays outside of its answer is kept. */
  keptMs: [10 * MINUTE, SECOND, DAY],
  /**
   * The size from which the result of a call stays outside of its answer, if the tool has no output
   * schema. 0 keeps every result in its answer.
   */
  inlineBytes: [0, 0, 512 * MB],
  /** How long a sandbox child, or the process of a server, lives without a call. */
  idleMs: [5 * MINUTE, SECOND, DAY],
  /** How many sandbox children there may be at once. */
  children: [8, 1, 1000],
  /** How many sandbox children may live without a call. */
  idleChildren: [8, 0, 1000],
  /** How much one sandbox child may write to files. */
  writeBytes: [4096 * MB, MB, 1024 * 1024 * MB],
  /** How long the start of a server may take. */
  startMs: [30 * SECOND, 100, 10 * MINUTE],
  /** How long `tools/list` waits for a server whose tools PML has never listed. */
  firstListMs: [3 * SECOND, 0, 10 * MINUTE],
  /** How much of a server program's standard error is kept for errors. */
  stderrBytes: [64 * KB, KB, 16 * MB],
  /** How many items one list of a server may have. */
  catalogTools: [50_000, 100, 1_000_000],
  /** The size at which a journal file is closed and the next one begins. */
  journalBytes: [16 * MB, 64 * KB, 1024 * MB],
  /** How many journal files of one process are kept. */
  journalFiles: [8, 1, 1000],
};

/** The name of a limit. */
export type LimitName =
  | "callMs"
  | "callMaxMs"
  | "approvalMs"
  | "connections"
  | "inputBytes"
  | "resultBytes"
  | "lineBytes"
  | "queuedBytes"
  | "unreadMs"
  | "moduleBytes"
  | "frameBytes"
  | "frames"
  | "heapMb"
  | "rssMb"
  | "concurrentCalls"
  | "queuedCalls"
  | "batch"
  | "planTasks"
  | "codeMs"
  | "codeCalls"
  | "waitingRuns"
  | "capabilityDepth"
  | "keptBytes"
  | "keptMs"
  | "inlineBytes"
  | "idleMs"
  | "children"
  | "idleChildren"
  | "writeBytes"
  | "startMs"
  | "firstListMs"
  | "stderrBytes"
  | "catalogTools"
  | "journalBytes"
  | "journalFiles";

/** The values of all limits. The end of a name is its unit. */
export type Limits = { readonly [K in LimitName]: number };

/** The names of all limits. */
export const LIMIT_NAMES = Object.keys(LIMITS) as readonly LimitName[];

/**
 * Returns the limits: the person's values, or else the defaults. `callMs` is `call_ms` in a file.
 */
export function limitsOf(said: Readonly<Record<string, number | undefined>>): Limits {
  const limits = LIMIT_NAMES.map((name) => [name, said[keyOf(name)] ?? LIMITS[name][0]]);
  // Every name of the table gets a value.
  return Object.fromEntries(limits) as Limits;
}

/** Returns the key of a limit or an option in a file. */
export function keyOf(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/**
 * All limits, with their defaults and the range in which a user may set them.
 *
 * @module
 */

/** Each limit: its default, its bounds and a sentence. The end of a name is the unit of its value. */
export const ROWS = {
  callMs: ["10 min", "100 ms", "24 h", "The time limit of a call."],
  callMaxMs: [
    "1 h",
    "100 ms",
    "24 h",
    "The time limit of a call that keeps reporting progress, and of a run with all its calls. " +
    "The time of questions to the user does not count.",
  ],
  approvalMs: ["10 min", "1 s", "24 h", "How long a question waits for its answer."],
  connections: [1024, 1, 65_536, "The maximum number of open connections of `pml serve`."],
  inputBytes: ["8 MB", "1 KB", "512 MB", "The maximum size of a request."],
  resultBytes: [
    "32 MB",
    "1 KB",
    "512 MB",
    "The maximum size of a call's result, and of all results of a batch together.",
  ],
  lineBytes: ["65 MB", "64 KB", "1 GB", "The maximum length of a line on a pipe."],
  queuedBytes: [
    "64 MB",
    "64 KB",
    "1 GB",
    "How much output may wait for the client. Beyond that, PML stops reading from servers.",
  ],
  unreadMs: [
    "1 min",
    "100 ms",
    "24 h",
    "How long a client may read nothing before PML closes its connection.",
  ],
  moduleBytes: ["2 MB", "1 KB", "64 MB", "The maximum size of a module's file."],
  frameBytes: [
    "64 MB",
    "64 KB",
    "1 GB",
    "How much a sandbox child may send in one call before it is killed.",
  ],
  frames: [
    10_000,
    10,
    10_000_000,
    "How many messages a sandbox child may send in one call before it is killed.",
  ],
  heapMb: ["256 MB", "32 MB", "65536 MB", "The maximum heap of a sandbox child process."],
  rssMb: [
    "512 MB",
    "64 MB",
    "131072 MB",
    "The maximum memory of a sandbox child process, with its heap.",
  ],
  concurrentCalls: [256, 1, 10_000, "How many calls may run at once."],
  queuedCalls: [1024, 0, 100_000, "How many calls may wait for their turn."],
  batch: [50, 1, 1000, "How many calls one batch may contain."],
  planTasks: [
    100,
    1,
    10_000,
    "How many tasks one plan may contain, including those that `for_each` creates.",
  ],
  codeMs: [
    "1 min",
    "100 ms",
    "24 h",
    "How long code may run. The time of its calls and of questions to the user does not count.",
  ],
  codeCalls: [200, 1, 100_000, "How many calls one run of code may make."],
  waitingRuns: [4, 1, 1000, "How many runs may wait for answers of the user at once."],
  capabilityDepth: [8, 1, 64, "How many capabilities may call each other, one inside the other."],
  keptBytes: [
    "64 MB",
    "64 KB",
    "1 GB",
    "The maximum total size of the results that PML keeps for references in answers.",
  ],
  keptMs: ["10 min", "1 s", "24 h", "How long PML keeps a result for a reference in an answer."],
  inlineBytes: [
    25_000,
    0,
    "512 MB",
    "The largest result that an answer contains, in characters, if the client lists `call` or `execute_workflow` and the tool has no output schema. For a larger result, the answer contains the beginning, and how to read on. 0: answers contain every result.",
  ],
  idleMs: [
    "5 min",
    "1 s",
    "24 h",
    "How long a sandbox child, or the process of a server, lives without a call.",
  ],
  children: [8, 1, 1000, "How many sandbox children there may be at once."],
  idleChildren: [8, 0, 1000, "How many sandbox children may live without a call."],
  writeBytes: ["4 GB", "1 MB", "1024 GB", "How much one sandbox child may write to files."],
  startMs: ["30 s", "100 ms", "10 min", "How long the start of a server may take."],
  firstListMs: [
    "3 s",
    0,
    "10 min",
    "How long `tools/list` waits for a server whose tools PML has never listed.",
  ],
  stderrBytes: [
    "64 KB",
    "1 KB",
    "16 MB",
    "How much of a server program's standard error is kept for errors.",
  ],
  catalogTools: [50_000, 100, 1_000_000, "How many items one list of a server may have."],
  journalBytes: [
    "16 MB",
    "64 KB",
    "1 GB",
    "The size at which a journal file is closed and the next one begins.",
  ],
  journalFiles: [8, 1, 1000, "How many journal files of one process are kept."],
} as const;

// `keyof typeof ROWS` would need the table in the exports of the package (`deno doc --lint`).
/** The name of a limit. */
export type LimitName = keyof (typeof import("./limits.ts"))["ROWS"];

/** A limit that can be set. */
export interface Limit {
  /** The default, the smallest and the largest value. */
  readonly values: readonly [number, number, number];
  /** The same values as the table has them, with units. */
  readonly written: readonly (string | number)[];
  /** The description, in a sentence. */
  readonly about: string;
}

/** The values of all limits. The end of a name is its unit. */
export type Limits = { readonly [K in LimitName]: number };

const MB = 1024 ** 2;
const UNITS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  min: 60_000,
  h: 3_600_000,
  bytes: 1,
  KB: 1024,
  MB,
  GB: 1024 * MB,
};

/** All limits. */
export const LIMITS: Readonly<Record<LimitName, Limit>> = mapLimits(
  ([usual, least, most, about], name) => {
    const written = [usual, least, most];
    const values = written.map((value) => {
      const [amount = "", unit = ""] = `${value}`.split(" ");
      return Number(amount) * (UNITS[unit] ?? 1) / (name.endsWith("Mb") ? MB : 1);
    });
    return { values, written, about } as unknown as Limit; // three values
  },
);

/** The names of all limits. */
export const LIMIT_NAMES = Object.keys(ROWS) as readonly LimitName[];

/**
 * Returns the limits: the values that the user set, or else the defaults. `callMs` is `call_ms` in a
 * file.
 */
export function limitsOf(written: Readonly<Record<string, number | undefined>>): Limits {
  return mapLimits((_, name) => written[limitKey(name)] ?? LIMITS[name].values[0]);
}

function mapLimits<T>(
  toValue: (row: typeof ROWS[LimitName], name: LimitName) => T,
): Record<LimitName, T> {
  const entries = Object.entries(ROWS).map((
    [name, row],
  ) => [name, toValue(row, name as LimitName)]);
  return Object.fromEntries(entries) as Record<LimitName, T>; // every name of the table
}

/** Returns the key of a limit or an option in a file. */
export function limitKey(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** Returns the name of a limit or an option by its key in a file. */
export function nameOf(key: string): string {
  return key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

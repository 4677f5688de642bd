/**
 * The calls of all processes of a PML home, from the journal.
 *
 * @module
 */

import { JournalReader } from "../audit/journal_lines.ts";
import type { CallRow, CallStory, MetricsSeries } from "../control/api.ts";
import { counted } from "../core/amounts.ts";
import { dropOldest } from "../core/memo.ts";
import { type JsonObject, objectOf, textOf } from "../core/json.ts";
import { parseToolId, splitToolId } from "../core/tool_id.ts";
import { isAlive } from "../io/folder_lock.ts";

/** The maximum number of calls that are kept. The oldest ones are dropped. */
const CALLS_MAX = 20_000;
/** The maximum number of records that the story of one call shows. */
const STORY_RECORDS_MAX = 500;
/** The maximum and the default number of calls in a list. `list()` may add calls of the last time. */
const [LIST_MAX, LIST_DEFAULT] = [500, 100];
/** The estimated number of bytes of a token. */
const TOKEN_BYTES = 4;

/** Which calls to list, the newest first. */
export interface CallFilter {
  readonly workspace?: string;
  readonly server?: string;
  readonly state?: string;
  readonly text?: string;
  /** Only calls that began before this time. */
  readonly before?: number;
  readonly limit?: number;
}

/** The process that wrote a file of the journal. */
interface Writer {
  readonly pid: number;
  readonly workspace: string;
}

/** A call with the facts that lists do not show. */
interface KnownCall {
  row: CallRow;
  /** Whether it is a plan or code. Its calls have its id as `parent`. */
  readonly isRun: boolean;
  readonly writer: Writer;
  readonly start: JsonObject;
}

const STATES: Readonly<Record<string, CallRow["state"]>> = {
  result: "done",
  "tool error": "failed",
  ask: "asking",
  failed: "failed",
};
/** Matches the events at the beginning and the end of a plan or of code. */
const RUN = /^(plan|code) (began|ended)$/;
const REFUSAL_CODES = ["PERMISSION_DENIED", "APPROVAL_DECLINED", "WORKSPACE_UNTRUSTED"];
const UNKNOWN_WRITER: Writer = { pid: 0, workspace: "" };

/** The calls of the journal. `read()` adds new ones. */
export class JournalCalls implements Disposable {
  /** The ids of running processes, by their process numbers. */
  processes: ReadonlyMap<number, string> = new Map();
  readonly #home: string;
  readonly #reader: JournalReader;
  readonly #calls = new Map<string, KnownCall>();
  /** The writers of files, by the paths of the files. */
  readonly #writers = new Map<string, Writer>();
  /** The clients of calls, by their ids. */
  readonly #clients = new Map<string, string>();
  #reading: Promise<readonly CallRow[]> | undefined;
  #problem: string | undefined;

  /** Takes the PML home. Reads nothing yet. */
  constructor(home: string) {
    this.#home = home;
    this.#reader = new JournalReader(home);
  }

  /** The reason why the journal cannot be read; undefined if it was read. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Reads the new records. Returns the calls that changed. Never throws. */
  read(): Promise<readonly CallRow[]> {
    return this.#reading ??= this.#read().finally(() => this.#reading = undefined);
  }

  async #read(): Promise<readonly CallRow[]> {
    const changed = new Map<string, CallRow>();
    try {
      for await (const { path, record } of this.#reader.read()) {
        const row = record && this.#takeRecord(record, path);
        if (row !== undefined) changed.set(row.id, row);
      }
      this.#problem = undefined;
    } catch (error) {
      this.#problem = Object(error).message;
    }
    for (const oldest of this.#calls.keys()) {
      if (this.#calls.size <= CALLS_MAX) break;
      this.#calls.delete(oldest);
    }
    return [...changed.values()];
  }

  /** Keeps the client of a call that a process reports, because the journal does not contain clients. */
  noteClient({ id, client }: CallRow): void {
    if (client === undefined) return;
    this.#clients.set(id, client);
    dropOldest(this.#clients, CALLS_MAX);
  }

  /** Returns calls, the newest first, and whether there are more. */
  list(filter: CallFilter = {}): { readonly calls: readonly CallRow[]; readonly more: boolean } {
    const limit = Math.min(filter.limit ?? LIST_DEFAULT, LIST_MAX);
    const { before = Infinity } = filter;
    const alive = new Map<number, boolean>();
    const matching = [...this.#calls.values()]
      .filter(({ row }) => row.at < before && matchesFilter(row, filter))
      .filter((call) => filter.state === undefined || this.#row(call, alive).state === filter.state)
      .sort((one, other) => other.row.at - one.row.at);
    // The next request asks for calls before the last one's time. So a list also contains all other
    // calls of this millisecond.
    const last = matching[limit - 1]?.row.at ?? -Infinity;
    const end = matching.findIndex(({ row }, index) => index >= limit && row.at !== last);
    const calls = end < 0 ? matching : matching.slice(0, end);
    return { calls: calls.map((call) => this.#row(call, alive)), more: end >= 0 };
  }

  /** The workspaces of the processes that wrote the journal. */
  get workspaces(): readonly string[] {
    const all = [...this.#writers.values()].map(({ workspace }) => workspace);
    return [...new Set(all)].filter((workspace) => workspace !== "");
  }

  /** Returns the records of a call, and the calls that belong to it; undefined if it is not kept. */
  async story(id: string): Promise<CallStory | undefined> {
    const entry = this.#calls.get(id);
    if (entry === undefined) return undefined;
    const shownRecords: CallStory["steps"][number][] = [];
    using reader = new JournalReader(this.#home);
    for await (const { text, record } of reader.read()) {
      if (record === undefined || !text.includes(id)) continue;
      if (shownRecords.length >= STORY_RECORDS_MAX) break;
      const { callId, run } = objectOf(record.about);
      const isAboutCall = [record.callId, callId, entry.isRun ? run : undefined].includes(id);
      if (isAboutCall) shownRecords.push(shownRecord(record));
    }
    // The other calls of the same plan or code, or the calls that this call made.
    const run = entry.row.parent ?? id;
    const children = [...this.#calls.values()].map((call) => this.#row(call))
      .filter((row) => row.id !== id && row.parent === run);
    const parent = this.#calls.get(entry.row.parent ?? "");
    return {
      call: this.#row(entry),
      ...parent !== undefined && { parent: this.#row(parent) },
      arguments: entry.start.arguments,
      steps: shownRecords.sort((one, other) => one.at - other.at),
      children,
    };
  }

  /** Returns counts over time: for `count` intervals of `intervalMs` each, up to now. */
  series(
    { now, intervalMs, count, workspace }: {
      readonly now: number;
      readonly intervalMs: number;
      readonly count: number;
      readonly workspace?: string;
    },
  ): MetricsSeries {
    const first = Math.floor(now / intervalMs) - count + 1;
    const intervals = Array.from(
      { length: count },
      () => ({ ms: [] as number[], errors: 0, bytes: 0 }),
    );
    for (const { row, isRun } of this.#calls.values()) {
      if (isRun) continue;
      const interval = intervals[Math.floor(row.at / intervalMs) - first];
      if (interval === undefined) continue;
      if (workspace !== undefined && row.workspace !== workspace) continue;
      interval.ms.push(row.ms ?? 0);
      interval.bytes += row.resultBytes ?? 0;
      if (row.state === "failed") interval.errors += 1;
    }
    return {
      at: intervals.map((_, index) => (first + index) * intervalMs),
      calls: intervals.map(({ ms }) => ms.length),
      errors: intervals.map(({ errors }) => errors),
      medianMs: intervals.map(({ ms }) => median(ms)),
      resultTokens: intervals.map(({ bytes }) => Math.round(bytes / TOKEN_BYTES)),
    };
  }

  /** Closes the files. */
  [Symbol.dispose](): void {
    this.#reader[Symbol.dispose]();
  }

  /** Returns the row of a call. If the call's process was killed, the journal has no end of the call. */
  #row({ row, isRun, writer: { pid } }: KnownCall, alive = new Map<number, boolean>()): CallRow {
    if (row.state === "running" && !alive.has(pid)) alive.set(pid, isAlive(pid));
    if (row.state === "running" && alive.get(pid) === false) {
      return { ...row, state: "failed", code: "ENDED" };
    }
    // The page can cancel a call whose row has a process. It cannot cancel plans and code.
    const processId = isRun ? undefined : this.processes.get(pid);
    const client = this.#clients.get(row.id);
    return {
      ...row,
      ...processId !== undefined && { process: processId },
      ...client !== undefined && { client },
    };
  }

  #takeRecord(record: JsonObject, path: string): CallRow | undefined {
    const { kind, event, about, callId } = record;
    if (event === "journal opened") {
      const { pid, workspace } = objectOf(about);
      this.#writers.set(path, { pid: Number(pid) || 0, workspace: textOf(workspace) });
      return undefined;
    }
    const writer = this.#writers.get(path) ?? UNKNOWN_WRITER;
    if (kind === "event") return this.#takeRun(record, writer);
    const id = textOf(callId);
    if (id === "") return undefined;
    if (kind === "start") {
      // A repeated start moves the call to the end, so that calls stay in the order of their starts.
      this.#calls.delete(id);
      const row = startRow(record, writer);
      this.#calls.set(id, { row, isRun: false, writer, start: record });
      return row;
    }
    const entry = this.#calls.get(id);
    if (kind !== "end" || entry === undefined) return undefined;
    entry.row = endRow(entry.row, record);
    return entry.row;
  }

  /** Adds the beginning or the end of a plan or of code. */
  #takeRun(record: JsonObject, writer: Writer): CallRow | undefined {
    const [, kind = "", moment] = RUN.exec(textOf(record.event)) ?? [];
    const id = textOf(objectOf(record.about).run);
    if (id === "" || moment === undefined) return undefined;
    if (moment === "began") {
      const row = runRow(record, { id, kind, workspace: writer.workspace });
      this.#calls.set(id, { row, isRun: true, writer, start: {} });
      return row;
    }
    const entry = this.#calls.get(id);
    if (entry === undefined) return undefined;
    const ms = (Date.parse(textOf(record.at)) || 0) - entry.row.at;
    entry.row = { ...entry.row, ...runEnd(objectOf(record.about)), ms };
    return entry.row;
  }
}

function runRow(
  { at, actor, about }: JsonObject,
  { id, kind, workspace }: {
    readonly id: string;
    readonly kind: string;
    readonly workspace: string;
  },
): CallRow {
  const { tasks } = objectOf(about);
  const identity = textOf(actor);
  return {
    ...{ id, workspace, server: "", state: "running" },
    at: Date.parse(textOf(at)) || 0,
    tool: typeof tasks === "number" ? `${kind} of ${counted(tasks, "task")}` : kind,
    ...identity !== "local" && identity !== "" && { identity },
  };
}

/**
 * Returns the state of a plan or of code from the event of its end. `outcome` of code is "value" or
 * an error code. Plans have none, unless they were cancelled: they have a number of tasks per state.
 */
function runEnd({ outcome, ...counts }: JsonObject): Pick<CallRow, "state" | "code"> {
  if (outcome === "CANCELLED") return { state: "cancelled" };
  if (outcome === undefined) {
    const isStopped = counts.failed !== undefined || counts["not run"] !== undefined;
    return { state: isStopped ? "failed" : "done" };
  }
  if (outcome === "value") return { state: "done" };
  const isCode = typeof outcome === "string" && /^[A-Z_]+$/.test(outcome);
  return { state: "failed", ...isCode && { code: outcome } };
}

function startRow(record: JsonObject, { workspace }: Writer): CallRow {
  const tool = textOf(record.tool);
  const id = parseToolId(tool);
  const { server, tool: name } = id === undefined ? { server: "", tool } : splitToolId(id);
  const [actor, run] = [textOf(record.actor), textOf(record.run)];
  return {
    id: textOf(record.callId),
    workspace,
    at: Date.parse(textOf(record.at)) || 0,
    server,
    tool: name,
    state: "running",
    ...actor !== "local" && actor !== "" && { identity: actor },
    ...run !== "" && { parent: run },
  };
}

function endRow(row: CallRow, { outcome, code, ms, size }: JsonObject): CallRow {
  const state = code === "CANCELLED"
    ? "cancelled"
    : REFUSAL_CODES.includes(textOf(code))
    ? "refused"
    : STATES[textOf(outcome)] ?? "failed";
  return {
    ...row,
    state,
    ...typeof ms === "number" && { ms: Math.round(ms * 10) / 10 },
    ...typeof size === "number" && { resultBytes: size },
    ...typeof code === "string" && { code },
  };
}

/** Returns whether a call matches a filter, apart from its state and time. */
function matchesFilter(row: CallRow, { workspace, server, text = "" }: CallFilter): boolean {
  return (workspace === undefined || row.workspace === workspace) &&
    (server === undefined || row.server === server) &&
    (text === "" ||
      `${row.server}:${row.tool} ${row.code ?? ""}`.toLowerCase().includes(text.toLowerCase()));
}

/** Returns a record as the story of its call shows it. */
function shownRecord(record: JsonObject): CallStory["steps"][number] {
  const { at, kind, event, about, outcome, code, verdict, rule, source, answer, ms, size } = record;
  const parts = kind === "start"
    ? { rules: verdict, rule, from: source, answer }
    : kind === "end"
    ? { outcome, code, ms, bytes: size }
    : Object.fromEntries(Object.entries(objectOf(about)).filter(([name]) => name !== "callId"));
  const text = Object.entries(parts).filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join("\n");
  return { at: Date.parse(textOf(at)) || 0, what: textOf(kind === "event" ? event : kind), text };
}

function median(values: readonly number[]): number | null {
  return values.toSorted((one, other) => one - other)[values.length >> 1] ?? null;
}

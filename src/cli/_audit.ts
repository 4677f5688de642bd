/**
 * `pml audit`: shows the journal, also new records as they are written, and checks that no record was
 * changed.
 *
 * @module
 */

import { checkJournal, checkpointOf, JournalReader } from "./journal_reader.ts";
import type { JournalRecord } from "../audit/journal.ts";
import { counted } from "../core/amounts.ts";
import { isObject, type JsonObject, quoted, visible } from "../core/json.ts";
import { dropOldest } from "../core/memo.ts";
import { matches, parsePattern, type Pattern } from "../core/pattern.ts";
import { isServerName, type ToolId } from "../core/tool_id.ts";
import { pause } from "../io/waiting.ts";
import {
  type CommandContext,
  type CommandInput,
  type CommandOutput,
  inContext,
} from "./_command_context.ts";
import { unknownWords, usage } from "./_failure.ts";
import { parseCount, parseTail } from "./_arguments.ts";
import { print, tell } from "./out.ts";

const KINDS = ["start", "end", "event"];
/** The outcomes that `--failed` shows. */
const FAILURES: readonly unknown[] = ["failed", "tool error"];
const LIMIT_MAX = 100_000;
/** How often `--follow` reads the journal, in milliseconds. */
const POLL_MS = 200;
/** Matches a checkpoint: a time and a hash. */
const CHECKPOINT = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)\/[0-9a-f]{64}$/;
/** The maximum number of running calls whose starts are kept in memory. */
const RUNNING_MAX = 10_000;
/**
 * How far a checkpoint lies in the past, in milliseconds: later records may not be in the files yet.
 */
const SETTLED_MS = 1_000;
/** The milliseconds of each unit of `--since`. */
const UNITS = new Map([["s", 1_000], ["m", 60_000], ["h", 3_600_000], ["d", 86_400_000]]);

/** The start of a call. */
interface CallStart {
  /** The time of the start record; empty for events, and if the file of this record was removed. */
  readonly at: string;
  /** The tool; empty if the record names none. */
  readonly tool: ToolId | "";
  readonly verdict: string;
  /** The identity that made the call; empty for the user's own clients. */
  readonly identity: string;
}

/** A row to show: a record, and the start of its call. */
interface Row {
  readonly at: string;
  /** The line of the record in its file. */
  readonly text: string;
  readonly record: JsonObject;
  readonly start: CallStart;
  /** The folder of the process; undefined for files of earlier versions. */
  readonly workspace: string | undefined;
}

const NO_CALLS =
  "The journal contains no matching call. `pml audit --kind event` shows other records";
const NO_RECORDS = "The journal contains no matching record";
const NO_START: CallStart = { at: "", tool: "", verdict: "", identity: "" };

/** Shows the journal, or checks it. */
export function audit(input: CommandInput): Promise<number> {
  const { words: [what, ...more], json = false } = input;
  const isCheck = what === "verify" && more.length === 0;
  const command = async (context: CommandContext): Promise<CommandOutput> => {
    if (isCheck) return await verify(context, input.checkpoint);
    if (input.checkpoint !== undefined) {
      throw usage("--checkpoint belongs to audit verify", "Run pml audit verify --checkpoint TEXT");
    }
    if (what === undefined) return await showJournal(context, input);
    throw unknownWords("audit", { ...input, known: ["verify"] });
  };
  // With `--json`, `showJournal()` itself prints each record as one line of JSON.
  return inContext(command, { runsWhenBroken: true })({ ...input, json: isCheck && json });
}

async function showJournal({ app, signal }: CommandContext, input: CommandInput) {
  const isWanted = parseFilter(input);
  const limit = parseLimit(input);
  // Without a kind, one line shows both records of a call.
  const isByCall = input.kind === undefined && input.json !== true;
  const { workspace: here } = app.config();
  // Also shows calls of files that name no workspace, because they may be of this one.
  const isShown = ({ workspace = here }: Row) => input.all === true || workspace === here;
  const otherWorkspaces = new Set<string>();
  const show = (row: Row) => {
    if (input.json) return print(jsonLine(row));
    const line = isByCall ? callLine(row) : recordLine(row);
    print(input.all ? `${line}  ${visible(row.workspace ?? "", 400)}`.trimEnd() : line);
  };
  using reader = new JournalReader(app.config().home);
  const running = new Map<string, Row>();
  const workspaces = new Map<string, string>();
  let badCount = 0;
  const emit = (row: Row, onRow: (row: Row) => void) => {
    if (!isWanted(row)) return;
    if (isShown(row)) onRow(row);
    else otherWorkspaces.add(row.workspace ?? "");
  };
  const read = async (onRow: (row: Row) => void) => {
    for await (const { path, text, record } of reader.read()) {
      if (record !== undefined) noteWorkspace(record, { path, workspaces });
      const row = record && rowOf(record, { text, running, workspace: workspaces.get(path) });
      if (row === undefined) badCount += 1;
      else if (!isByCall) emit(row, onRow);
      else if (row.record.kind === "end") emit({ ...row, at: row.start.at || row.at }, onRow);
      if (signal.aborted) return;
    }
    warnBadLines(badCount);
    badCount = 0;
  };
  let rows: Row[] = [];
  await read((row) => {
    // Keeps the memory small: a journal may have millions of records.
    if (rows.push(row) > 2 * limit + 1_000) rows = newest(rows, limit);
  });
  if (isByCall) { for (const row of running.values()) emit(row, (shown) => rows.push(shown)); }
  const records = newest(rows, limit);
  for (const row of records) show(row);
  while (input.follow && !signal.aborted) {
    await pause(POLL_MS, signal);
    await read(show);
  }
  if (records.length === 0 && !input.follow) tell(isByCall ? NO_CALLS : NO_RECORDS);
  if (otherWorkspaces.size > 0 && !input.follow) {
    const count = counted(otherWorkspaces.size, "other workspace");
    tell(`Not shown: ${count}. \`pml audit --all\` shows all`);
  }
  return { value: null, text: "" };
}

/** Warns about lines of the journal that contain no valid record. */
function warnBadLines(count: number): void {
  if (count > 0) tell(`warning: lines without a record: ${count}; see \`pml audit verify\``);
}

/** Returns the maximum number of earlier rows. By default, `--follow` shows only new rows. */
function parseLimit({ follow, since, limit }: CommandInput): number {
  const isOnlyNew = follow === true && since === undefined;
  return (follow ? parseTail : parseCount)(limit ?? (isOnlyNew ? "0" : "50"), LIMIT_MAX);
}

/** Sorts rows by time, and returns the last ones. */
function newest(rows: Row[], limit: number): Row[] {
  return rows.sort((a, b) => a.at < b.at ? -1 : a.at > b.at ? 1 : 0)
    .slice(Math.max(0, rows.length - limit));
}

/** Stores the workspace of a file if the record is its first one, which names the workspace. */
function noteWorkspace(
  { event, about }: JsonObject,
  { path, workspaces }: { readonly path: string; readonly workspaces: Map<string, string> },
): void {
  if (event !== "journal opened" || !isObject(about)) return;
  if (typeof about.workspace === "string") workspaces.set(path, about.workspace);
}

/** Returns the row of a record; undefined if it is not valid. Updates the map of running calls. */
function rowOf(
  record: JsonObject,
  { text, running, workspace }: {
    readonly text: string;
    readonly running: Map<string, Row>;
    readonly workspace?: string | undefined;
  },
): Row | undefined {
  const { at, kind, callId } = record;
  if (typeof at !== "string" || typeof kind !== "string") return undefined;
  const id = String(callId);
  if (kind === "start") {
    const tool = String(record.tool ?? "") as ToolId;
    const { actor = "local", verdict = "" } = record;
    const identity = actor === "local" ? "" : String(actor);
    const start = { at, tool, verdict: String(verdict), identity };
    const row = { at, text, record, start, workspace };
    running.set(id, row);
    return row;
  }
  const { start = NO_START } = running.get(id) ?? {};
  if (kind === "end") running.delete(id);
  return { at, text, record, start, workspace };
}

/** Returns the line of the record in its file, with the workspace added as its last member. */
function jsonLine({ text, workspace }: Row): string {
  if (workspace === undefined) return text;
  return `${text.slice(0, text.lastIndexOf("}"))},"workspace":${JSON.stringify(workspace)}}`;
}

/** Returns a function that receives the records of this process, and shows a line for each call. */
export function callLines(show: (line: string) => void): (record: JournalRecord) => void {
  const running = new Map<string, Row>();
  return (record) => {
    const at = new Date().toISOString();
    const row = rowOf({ at, ...record }, { text: "", running });
    // If the journal cannot write a start, no end may follow, and the call would stay here forever.
    dropOldest(running, RUNNING_MAX);
    if (row?.record.kind === "end") show(callLine({ ...row, at: row.start.at || at }));
  };
}

/** Returns the line of a call: its start, tool, verdict, outcome, duration and identity. */
function callLine({ at, record, start }: Row): string {
  const { tool, verdict, identity } = start;
  const end = record.kind === "end" ? endText(record) : ["running, or PML was killed"];
  const parts = [tool.padEnd(32), verdict.padEnd(5), ...end, ...byIdentity(identity)];
  return visible(`${at}  ${parts.join("  ")}`.trimEnd(), 600);
}

function byIdentity(name: string): readonly string[] {
  return name === "" ? [] : [`by ${name}`];
}

function endText({ outcome, code, ms }: JsonObject): readonly string[] {
  const end = [outcome, code].filter((part) => part !== undefined).join(" ");
  return [end, typeof ms === "number" ? `${Math.round(ms)} ms` : ""];
}

function recordLine({ at, record, start: { tool, verdict, identity } }: Row): string {
  const { kind, event, about } = record;
  const start = `${at}  ${String(kind).padEnd(5)}`;
  if (kind === "event") {
    const details = about === undefined ? "" : `  ${JSON.stringify(about)}`;
    return visible(`${start}  ${event}${details}`, 600);
  }
  const parts = [tool.padEnd(32), verdict.padEnd(5), ...endText(record), ...byIdentity(identity)];
  return visible(`${start}  ${parts.join("  ")}`.trimEnd(), 600);
}

/** Returns a function that checks rows against the options. Throws if an option is not valid. */
function parseFilter({ tool, server, kind, since, failed }: CommandInput): (row: Row) => boolean {
  if (kind !== undefined && !KINDS.includes(kind)) {
    throw usage(`Unknown kind ${quoted(kind)}`, `Use one of ${KINDS.join(", ")}`);
  }
  const pattern = tool === undefined ? undefined : parseToolPattern(tool);
  const from = since === undefined ? "" : parseTime(since);
  return (row) =>
    row.at >= from &&
    (kind === undefined || row.record.kind === kind) &&
    (pattern === undefined || row.start.tool !== "" && matches(pattern, row.start.tool)) &&
    (server === undefined || row.start.tool.startsWith(`${server}:`) || isAbout(row, server)) &&
    (!failed || FAILURES.includes(row.record.outcome));
}

function isAbout({ record: { about } }: Row, server: string): boolean {
  return isObject(about) && about.server === server;
}

function parseToolPattern(text: string): Pattern {
  const pattern = parsePattern(isServerName(text) ? `${text}:*` : text);
  if (pattern.kind === "any" || pattern.kind === "server" || pattern.kind === "exact") {
    return pattern;
  }
  const missing = pattern.kind === "reads" ? "whether a tool only reads" : "values of arguments";
  throw usage(
    `Cannot filter by ${quoted(text, 200)}: the journal does not record ${missing}`,
    "Give a server, server:tool or server:*",
  );
}

function parseTime(since: string): string {
  const [, count, unit = ""] = /^(\d{1,6})([smhd])$/.exec(since) ?? [];
  const ago = Number(count) * (UNITS.get(unit) ?? NaN);
  const time = count === undefined ? Date.parse(since) : Date.now() - ago;
  // `Date.parse()` reads short numbers as months or years. Only four digits are surely a year.
  const isTime = Number.isFinite(time) && time >= 0 && !/^\d{1,3}$/.test(since);
  if (isTime) return new Date(time).toISOString();
  throw usage(
    `Cannot read the time ${quoted(since, 100)}`,
    "Write 30m, 2h, 7d, or a date such as 2026-01-31",
  );
}

async function verify(
  { app }: CommandContext,
  argument: string | undefined,
): Promise<CommandOutput> {
  const [, checkpointTime] = argument === undefined ? [] : CHECKPOINT.exec(argument) ?? [];
  if (argument !== undefined && checkpointTime === undefined) {
    throw usage(
      `Cannot read the checkpoint ${quoted(argument, 100)}`,
      "Give the checkpoint as pml audit verify printed it",
    );
  }
  const { home } = app.config();
  const until = new Date(Date.now() - SETTLED_MS).toISOString();
  const checks = await checkJournal(home, until);
  const differs = checkpointTime !== undefined &&
    checkpointOf(await checkJournal(home, checkpointTime), checkpointTime) !== argument;
  const bad = checks.flatMap(({ bad }) => bad ?? []);
  const ok = bad.length === 0 && !differs;
  const checkpoint = bad.length === 0 ? checkpointOf(checks, until) : undefined;
  const value = {
    ok,
    ...checkpointTime !== undefined && { matches: !differs },
    ...checkpoint !== undefined && { checkpoint },
    files: checks.flatMap(({ files }) => files).length,
    records: checks.reduce((all, { records }) => all + records, 0),
    bad,
    cut: checks.filter(({ complete }) => !complete).map(({ files: [first] }) => first),
    open: checks.filter((check) => !check.closed && !check.bad).map(({ files }) => files.at(-1)),
  };
  const lines = [
    ...bad.map(({ file, line, reason }) => `${file}:${line}: ${reason}`),
    ...(differs
      ? [
        `Records until ${checkpointTime} are not those of the checkpoint: some were changed or removed`,
      ]
      : []),
    ...value.cut.map((file) => `${file}: older records of its process were removed`),
    ...value.open.map((file) => `${file}: not closed; its process runs, or its end may be missing`),
    `${counted(value.records, "record")} in ${counted(value.files, "file")}: ${
      ok ? "unchanged" : "BROKEN"
    }`,
    ...checkpoint === undefined ? [] : [`Checkpoint: ${checkpoint}`],
  ];
  return { value, text: lines.join("\n"), code: ok ? 0 : 1 };
}

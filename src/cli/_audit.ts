/**
 * `pml audit`: shows the journal, follows it, and checks that no record of it was changed.
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
import { type CommandContext, inContext, type Shown, type Typed } from "./_command_context.ts";
import { unknownWords, usage } from "./_failure.ts";
import { limitOf } from "./_arguments.ts";
import { print, tell } from "./out.ts";

const KINDS = ["start", "end", "event"];
const FAILURES: readonly unknown[] = ["failed", "tool error"];
const LIMIT_MAX = 100_000;
const FOLLOW_MS = 200;
const CHECKPOINT = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)\/[0-9a-f]{64}$/;
/** The maximum number of running calls whose starts are remembered for their lines. */
const RUNNING_MAX = 10_000;
/** Records of the last second may still be on their way to a file. */
const SETTLED_MS = 1_000;
const UNITS = new Map([["s", 1_000], ["m", 60_000], ["h", 3_600_000], ["d", 86_400_000]]);

/** The start of a call. */
interface CallStart {
  /** The time of the start record; empty if its file was removed. */
  readonly at: string;
  /** Empty where there is none. */
  readonly tool: ToolId | "";
  readonly verdict: string;
}

/** A line to show: a record, and the start of the call that it belongs to. */
interface Row {
  readonly at: string;
  readonly text: string;
  readonly record: JsonObject;
  readonly start: CallStart;
}

const NO_START: CallStart = { at: "", tool: "", verdict: "" };

/** Shows the journal, or checks it. */
export function audit(typed: Typed): Promise<number> {
  const { words: [what, ...more], json = false } = typed;
  const isCheck = what === "verify" && more.length === 0;
  const command = async (at: CommandContext): Promise<Shown> => {
    if (isCheck) return await verify(at, typed.checkpoint);
    if (typed.checkpoint !== undefined) {
      throw usage("--checkpoint belongs to audit verify", "Run pml audit verify --checkpoint TEXT");
    }
    if (what === undefined) return await showJournal(at, typed);
    throw unknownWords("audit", { ...typed, known: ["verify"] });
  };
  // Records are printed as they come, each as one line of JSON.
  return inContext(command, { broken: true })({ ...typed, json: isCheck && json });
}

async function showJournal({ app, signal }: CommandContext, typed: Typed): Promise<Shown> {
  const isWanted = filterOf(typed);
  const limit = limitOf(typed.limit ?? "50", LIMIT_MAX);
  // Without a kind, the two records of a call are one line.
  const isByCall = typed.kind === undefined && typed.json !== true;
  const show = (row: Row) =>
    print(typed.json ? row.text : isByCall ? callLine(row) : recordLine(row));
  using reader = new JournalReader(app.config().home);
  const running = new Map<string, Row>();
  let broken = 0;
  const read = async (take: (row: Row) => void) => {
    for await (const { text, record } of reader.read()) {
      const row = record && rowOf(record, { text, running });
      if (row === undefined) broken += 1;
      else if (isWanted(row) && (!isByCall || row.record.kind === "end")) {
        take(isByCall ? { ...row, at: row.start.at || row.at } : row);
      }
      if (signal.aborted) return;
    }
    if (broken > 0) tell(`warning: lines that hold no record: ${broken}; see \`pml audit verify\``);
    broken = 0;
  };
  let last: Row[] = [];
  await read((row) => {
    if (last.push(row) > 2 * limit + 1_000) last = newest(last, limit);
  });
  if (isByCall) last.push(...[...running.values()].filter(isWanted));
  const records = newest(last, limit);
  for (const row of records) show(row);
  while (typed.follow && !signal.aborted) {
    await pause(FOLLOW_MS, signal);
    await read(show);
  }
  if (records.length === 0 && !typed.follow) {
    tell(
      isByCall
        ? "The journal contains no such call. `pml audit --kind event` shows other records"
        : "The journal contains no such record",
    );
  }
  return { value: null, text: "" };
}

function newest(rows: Row[], limit: number): Row[] {
  return rows.sort((a, b) => a.at < b.at ? -1 : a.at > b.at ? 1 : 0).slice(-limit);
}

/** Returns the row of a record, and notes which calls are running. */
function rowOf(
  record: JsonObject,
  { text, running }: {
    readonly text: string;
    readonly running: Map<string, Row>;
  },
): Row | undefined {
  const { at, kind, callId } = record;
  if (typeof at !== "string" || typeof kind !== "string") return undefined;
  const id = String(callId);
  if (kind === "start") {
    const tool = String(record.tool ?? "") as ToolId;
    const row = { at, text, record, start: { at, tool, verdict: String(record.verdict ?? "") } };
    running.set(id, row);
    return row;
  }
  const { start = NO_START } = running.get(id) ?? {};
  if (kind === "end") running.delete(id);
  return { at, text, record, start };
}

/** Returns a function that takes the records of this process and shows a line for each call. */
export function callLines(show: (line: string) => void): (record: JournalRecord) => void {
  const running = new Map<string, Row>();
  return (record) => {
    const at = new Date().toISOString();
    const row = rowOf({ at, ...record }, { text: "", running });
    // A call whose start cannot be written has no end.
    dropOldest(running, RUNNING_MAX);
    if (row?.record.kind === "end") show(callLine({ ...row, at: row.start.at || at }));
  };
}

/** Returns the line of a call: when it started, its tool, verdict, outcome and time. */
function callLine({ at, record, start }: Row): string {
  const { tool, verdict } = start;
  const end = record.kind === "end" ? endText(record) : ["running, or PML was killed"];
  const parts = [tool.padEnd(32), verdict.padEnd(5), ...end];
  return visible(`${at}  ${parts.join("  ")}`.trimEnd(), 600);
}

function endText({ outcome, code, ms }: JsonObject): readonly string[] {
  const end = [outcome, code].filter((one) => one !== undefined).join(" ");
  return [end, typeof ms === "number" ? `${Math.round(ms)} ms` : ""];
}

function recordLine({ at, record, start: { tool, verdict } }: Row): string {
  const { kind, event, about } = record;
  const start = `${at}  ${String(kind).padEnd(5)}`;
  if (kind === "event") {
    const more = about === undefined ? "" : `  ${JSON.stringify(about)}`;
    return visible(`${start}  ${event}${more}`, 600);
  }
  const parts = [tool.padEnd(32), verdict.padEnd(5), ...endText(record)];
  return visible(`${start}  ${parts.join("  ")}`.trimEnd(), 600);
}

/** Returns whether a record is wanted, by the options. Throws if one of them makes no sense. */
function filterOf({ tool, server, kind, since, failed }: Typed): (row: Row) => boolean {
  if (kind !== undefined && !KINDS.includes(kind)) {
    throw usage(`Unknown kind ${quoted(kind)}`, `Use one of ${KINDS.join(", ")}`);
  }
  const pattern = tool === undefined ? undefined : patternOf(tool);
  const from = since === undefined ? "" : timeOf(since);
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

function patternOf(text: string): Pattern {
  const pattern = parsePattern(isServerName(text) ? `${text}:*` : text);
  if (pattern.kind === "any" || pattern.kind === "server" || pattern.kind === "exact") {
    return pattern;
  }
  const missing = pattern.kind === "reads" ? "effects of tools" : "values of arguments";
  throw usage(
    `Cannot filter by ${quoted(text, 200)}: the journal contains no ${missing}`,
    "Give a server, server:tool or server:*",
  );
}

function timeOf(since: string): string {
  const [, count, unit = ""] = /^(\d{1,6})([smhd])$/.exec(since) ?? [];
  const ago = Number(count) * (UNITS.get(unit) ?? NaN);
  const time = count === undefined ? Date.parse(since) : Date.now() - ago;
  // A bare number would be read as a year.
  const isTime = Number.isFinite(time) && time >= 0 && !/^\d{1,3}$/.test(since);
  if (isTime) return new Date(time).toISOString();
  throw usage(
    `Cannot read the time ${quoted(since, 100)}`,
    "Write 30m, 2h, 7d, or a date such as 2026-01-31",
  );
}

async function verify({ app }: CommandContext, argument: string | undefined): Promise<Shown> {
  const [, since] = argument === undefined ? [] : CHECKPOINT.exec(argument) ?? [];
  if (argument !== undefined && since === undefined) {
    throw usage(
      `Cannot read the checkpoint ${quoted(argument, 100)}`,
      "Give the checkpoint as pml audit verify printed it",
    );
  }
  const { home } = app.config();
  const until = new Date(Date.now() - SETTLED_MS).toISOString();
  const checks = await checkJournal(home, until);
  const differs = since !== undefined &&
    checkpointOf(await checkJournal(home, since), since) !== argument;
  const bad = checks.flatMap(({ bad }) => bad ?? []);
  const ok = bad.length === 0 && !differs;
  const checkpoint = bad.length === 0 ? checkpointOf(checks, until) : undefined;
  const value = {
    ok,
    ...since !== undefined && { matches: !differs },
    ...checkpoint !== undefined && { checkpoint },
    files: checks.flatMap(({ files }) => files).length,
    records: checks.reduce((all, { records }) => all + records, 0),
    bad,
    cut: checks.filter(({ complete }) => !complete).map(({ files: [first] }) => first),
    open: checks.filter((check) => !check.closed && !check.bad).map(({ files }) => files.at(-1)),
  };
  const lines = [
    ...bad.map(({ file, line, flush, reason }) => `${file}:${line}: flush ${flush}: ${reason}`),
    ...(differs
      ? [`Records until ${since} are not those of the checkpoint: some were changed or removed`]
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

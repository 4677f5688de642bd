/**
 * Shows the table of new servers on a terminal, lets the user edit it, and writes its rules in one
 * edit of a file.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { counted } from "../core/amounts.ts";
import { asPmlError } from "../core/errors.ts";
import { splitToolId, type ToolId } from "../core/tool_id.ts";
import { quoted, visible } from "../core/json.ts";
import { settlesWithin } from "../io/waiting.ts";
import { effectOf } from "../policy/multi_tool_rules.ts";
import { reachText } from "../policy/rule_file.ts";
import { RULE_LISTS, type RuleList } from "../policy/rule_lists.ts";
import { escapeInvisible } from "../policy/trust_subject.ts";
import { type CommandContext, prepare, recordAction } from "./_command_context.ts";
import { forgetLists } from "./fresh_lists.ts";
import { rulesChange } from "./_rules.ts";
import {
  isSameTable,
  readTable,
  type ServerTable,
  tableLines,
  type TableRow,
} from "./_server_table.ts";
import { agrees, askKey, askWord, isTerminal, stopError, untilDoneOrEnter } from "./_terminal.ts";
import { tell } from "./out.ts";

/** The result of a table: the rules that were written, or why none was. */
export type TableResult =
  | { readonly kind: "accepted"; readonly rules: number; readonly written: string }
  | { readonly kind: "declined" | "empty" };

/** How long a user waits for servers before they can go on without them, in milliseconds. */
const PATIENT_MS = 3_000;
/** The maximum number of times that a table is shown: a server may change its tools meanwhile. */
const SHOWN_MAX = 3;
const ANSWERS = [
  { reply: "accept", key: "y", name: "accept" },
  { reply: "texts", key: "t", name: "texts of tools" },
  { reply: "edit", key: "e", name: "edit" },
  { reply: "decline", key: "n", name: "decline" },
] as const;
const WITHOUT_TABLE =
  "Each tool asks, unless a rule allows it. `pml rules table` shows the table later";
const EDIT = /^(all|\d{1,5}(?:-\d{1,5})?(?:,\d{1,5}(?:-\d{1,5})?)*) +(allow|ask|deny)$/;

/**
 * Shows the table of servers, and writes the rules that the user accepts. The rules go to the file
 * of the servers' definitions, in one edit.
 */
export async function askTable(
  context: CommandContext,
  { servers, workspace }: { readonly servers: readonly string[]; readonly workspace: boolean },
): Promise<TableResult> {
  const { app } = context;
  let table = await readTable(app, servers);
  for (let attempt = 0; attempt < SHOWN_MAX; attempt++) {
    if (table.rows.length === 0) {
      if (table.unlisted.length > 0) tell(`\n${tableLines(table).join("\n")}`);
      return { kind: "empty" };
    }
    const answer = await askAboutTable(context, table, workspace);
    if (answer === undefined) return { kind: "declined" };
    const newTable = await relistTable(context, servers);
    // guard: table-shown
    if (!isSameTable(table, newTable)) {
      tell(
        "\nThe tools or the rules have changed since the table was shown. This is the table now:",
      );
      table = newTable;
      continue;
    }
    return await acceptTable(context, table, { ...answer, workspace });
  }
  tell("The tools keep changing, so nothing is allowed");
  return { kind: "declined" };
}

/**
 * Offers to start new servers, and shows the table of their tools. Returns lines about the result.
 */
export async function offerTable(
  context: CommandContext,
  servers: readonly string[],
  workspace: boolean,
): Promise<readonly string[]> {
  if (servers.length === 0) return [];
  const [count, their] = servers.length === 1 ? ["this server", "its"] : [
    `these ${servers.length} servers`,
    "their",
  ];
  const question = `\nStart ${count} now, to decide about all ${their} tools in one table?`;
  if (!await agrees(question, context)) {
    return [WITHOUT_TABLE];
  }
  await context.app.policy.reload();
  await startUntilEnter(context, servers);
  const result = await askTable(context, { servers, workspace });
  return [result.kind === "accepted" ? result.written : `No rule was written. ${WITHOUT_TABLE}`];
}

/** Starts servers and waits for their tools. The table names the reason for each that fails. */
export async function startServers(
  context: CommandContext,
  servers: readonly string[],
): Promise<void> {
  await Promise.allSettled(servers.map((name) => prepare(context, name)));
}

/** Starts servers and waits for their tools, or until the user at the terminal goes on without them. */
export async function startUntilEnter(
  context: CommandContext,
  servers: readonly string[],
): Promise<void> {
  const waitEnd = new AbortController();
  const signal = AbortSignal.any([context.signal, waitEnd.signal]);
  const starts = startServers({ ...context, signal }, servers);
  if (!isTerminal() || await settlesWithin(starts, PATIENT_MS)) return void await starts;
  const text = "Press Enter to go on without the servers that are not there yet";
  if (await untilDoneOrEnter(starts, { text, signal: context.signal })) return;
  context.signal.throwIfAborted();
  waitEnd.abort();
  await starts;
}

/** Asks the servers for their tools again, because the answer covers only the shown definitions. */
export async function relistTable(
  context: CommandContext,
  servers: readonly string[],
): Promise<ServerTable> {
  const { app } = context;
  const ready = app.servers.states().filter(({ state }) => state === "ready");
  await app.policy.reload();
  for (const name of servers) {
    if (ready.some((one) => one.name === name)) await forgetLists(app, name);
  }
  // The other servers had no rows. If one has started meanwhile, its rows change the table.
  await startServers(context, servers.filter((name) => ready.some((one) => one.name === name)));
  return await readTable(app, servers);
}

/** The user's answer to a table. */
export interface TableAnswer {
  /** The decisions that differ from the proposed ones. */
  readonly chosen: ReadonlyMap<ToolId, RuleList>;
  /** The tools whose texts were shown. */
  readonly read: ReadonlySet<ToolId>;
}

/** Asks about a table. Returns undefined if the user declines, and throws if they stop. */
async function askAboutTable(
  { app, signal }: CommandContext,
  table: ServerTable,
  workspace: boolean,
): Promise<TableAnswer | undefined> {
  const chosen = new Map<ToolId, RuleList>();
  const read = new Set<ToolId>();
  const show = () => tell(["", ...tableLines(table, chosen), ""].join("\n"));
  const path = workspace ? app.policy.rulesFile : app.loaded().userConfig.path;
  const reach = reachText({ path, isOfUser: !workspace }, app.loaded());
  tell("\nWhat the tools may do without a question. PML proposes by their definitions:");
  show();
  for (;;) {
    const count = changedRows(table.rows, chosen).length;
    const rules = count === 0
      ? "Accept the table? It needs no new rule."
      : `Write ${counted(count, "rule")} ${reach}?`;
    const reply = await askKey(rules, { answers: ANSWERS, enterReply: "decline", signal });
    if (reply === "accept") return { chosen, read };
    if (reply === "cancelled") throw stopError();
    if (reply === "decline") return undefined;
    if (reply === "texts") {
      const message = "Numbers of tools, such as 1-3,7, or all";
      const numbers = (line: string) => rowsIn(table.rows, line);
      for (const row of await askReadable(message, numbers, { table, signal }) ?? []) {
        tell(textsOf(row));
        read.add(row.id);
      }
      continue;
    }
    const message = "Numbers and a decision, such as `1-3,7 ask` or `all ask`";
    const edit = await askReadable(message, (line) => editIn(table.rows, line), { table, signal });
    for (const row of edit?.rows ?? []) {
      // guard: table-unread
      if (edit?.list === "allow" && row.isMarked && !read.has(row.id)) {
        tell(`${visible(row.id, 200)} has unusual texts: read them first (t)`);
        continue;
      }
      if (edit !== undefined) chosen.set(row.id, edit.list);
    }
    show();
  }
}

/** Asks for a line until it is readable. Returns undefined for an empty line, or if the user stops. */
async function askReadable<T>(
  message: string,
  parse: (line: string) => T | undefined,
  { table, signal }: { readonly table: ServerTable; readonly signal: AbortSignal },
): Promise<T | undefined> {
  for (;;) {
    const line = await askWord(message, signal);
    if (line === undefined || line === "") return undefined;
    const value = parse(line);
    if (value !== undefined) return value;
    tell(`Cannot read ${quoted(line, 60)}: the table has the numbers 1 to ${table.rows.length}`);
  }
}

/** Writes the rules in one edit, and pins the definitions that were shown. */
export async function acceptTable(
  context: CommandContext,
  { rows }: ServerTable,
  { chosen, read, workspace }: TableAnswer & { readonly workspace: boolean },
): Promise<TableResult> {
  const { app } = context;
  const changed = changedRows(rows, chosen);
  const rules = Map.groupBy(changed, ([, list]) => list);
  const change = await rulesChange(app, {
    workspace,
    rules: [...rules].map(([list, all]) => ({ list, rules: all.map(([{ id }]) => id) })),
  });
  await pinShown(app, rows);
  const shown = rows.filter(({ id }) => read.has(id)).map(({ hash }) => hash);
  const { approvals, alwaysRules } = await app.callPath();
  await approvals.markRead(shown);
  const allowed = changed.filter(([, list]) => list === "allow").map(([{ id }]) => id);
  // A rule ends if its tool no longer only reads.
  const effects = allowed.flatMap((id) => {
    const definition = app.catalog.get(id)?.own;
    return definition === undefined ? [] : [{ id, effect: effectOf(definition) }];
  });
  await alwaysRules.multiTool.add(change.path, effects);
  if (change.diff !== "") await change.write();
  await app.policy.reload();
  await recordAction(context, "table accepted", {
    file: change.path,
    allowed,
    rules: changed.length,
  });
  const reach = reachText({ path: change.path, isOfUser: !workspace }, app.loaded());
  const askingCount = rows.filter(({ present }) => present === "ask").length;
  const written = changed.length === 0
    ? `No rule was written: ${
      askingCount === rows.length
        ? "all of these tools ask"
        : "the present rules decide as the table shows"
    }`
    : `${counted(changed.length, "rule")} written ${reach}`;
  return { kind: "accepted", rules: changed.length, written };
}

/** Pins the shown definitions, so that another definition of a tool asks in spite of its rule. */
async function pinShown(app: App, rows: readonly TableRow[]): Promise<void> {
  const pins = await app.pins();
  for (const { id } of rows) {
    const tool = app.catalog.get(id);
    const identity = tool && await app.directory.get(splitToolId(id).server).identity();
    if (tool === undefined || identity === undefined) continue;
    try {
      if (await pins.findUnapproved(identity) === undefined) {
        await pins.findUnapprovedTool(identity, tool.own);
      }
    } catch (error) {
      // The first call compares and pins it, as without a table.
      tell(`warning: cannot pin ${visible(id, 200)}: ${asPmlError(error).message}`);
    }
  }
  await pins.flush();
}

/** Returns the rows whose decision needs a rule, with the list of that rule. */
function changedRows(
  rows: readonly TableRow[],
  chosen: ReadonlyMap<ToolId, RuleList>,
): readonly (readonly [TableRow, RuleList])[] {
  return rows.flatMap((row) => {
    const list = chosen.get(row.id) ?? row.proposed;
    return list === row.present ? [] : [[row, list] as const];
  });
}

/** Returns the rows and the decision of a line such as `1-3,7 ask`; undefined if it is not readable. */
function editIn(
  rows: readonly TableRow[],
  line: string,
): { readonly rows: readonly TableRow[]; readonly list: RuleList } | undefined {
  const [, numbers = "", word] = EDIT.exec(line) ?? [];
  const list = RULE_LISTS.find((each) => each === word);
  const edited = list && rowsIn(rows, numbers);
  return edited && { rows: edited, list };
}

/**
 * Returns the rows with these numbers: `all`, or numbers and ranges separated by commas; undefined if
 * a part is not readable or the table has no such number.
 */
function rowsIn(rows: readonly TableRow[], text: string): readonly TableRow[] | undefined {
  if (text.trim() === "all") return rows;
  const numbers = new Set<number>();
  for (const part of text.split(",")) {
    const [, from, to = from] = /^\s*(\d{1,5})(?:-(\d{1,5}))?\s*$/.exec(part) ?? [];
    const [first, last] = [Number(from), Number(to)];
    if (!(first >= 1 && first <= last && last <= rows.length)) return undefined;
    for (let number = first; number <= last; number++) numbers.add(number);
  }
  return [...numbers].flatMap((number) => rows[number - 1] ?? []);
}

function textsOf({ id, texts }: TableRow): string {
  const lines = texts.length === 0 ? ["  no texts that reach a model"] : texts;
  return ["", visible(id, 200), ...lines.map((line) => `  ${escapeInvisible(line)}`)].join("\n");
}

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
import { visible } from "../core/json.ts";
import { effectOf } from "../policy/multi_tool_rules.ts";
import { reachText } from "../policy/rule_file.ts";
import type { RuleList } from "../policy/rule_lists.ts";
import { unhidden } from "../policy/trust_subject.ts";
import { type CommandContext, prepare, recordAction } from "./_command_context.ts";
import { forgetLists } from "./fresh_lists.ts";
import { rulesChange } from "./_rules.ts";
import {
  isSameTable,
  type ServerTable,
  tableLines,
  tableOf,
  type TableRow,
} from "./_server_table.ts";
import { agrees, askKey, askWord } from "./_terminal.ts";
import { tell } from "./out.ts";

/** The result of a table: the rules that were written, or why none was. */
export type TableResult =
  | { readonly kind: "accepted"; readonly rules: number; readonly written: string }
  | { readonly kind: "declined" | "empty" };

/** How often a table is shown again because a server changed its tools meanwhile. */
const MOST_CHANGES = 3;
const ANSWERS = [
  { reply: "accept", key: "y", name: "accept" },
  { reply: "texts", key: "t", name: "texts of tools" },
  { reply: "edit", key: "e", name: "edit" },
  { reply: "decline", key: "n", name: "decline" },
] as const;
const EDIT = /^(all|\d{1,5}(?:-\d{1,5})?(?:,\d{1,5}(?:-\d{1,5})?)*) +(allow|ask|deny)$/;

/**
 * Shows the table of servers, and writes the rules that the user accepts. The rules go to the file
 * of the servers' definitions, in one edit.
 */
export async function askTable(
  at: CommandContext,
  { servers, workspace }: { readonly servers: readonly string[]; readonly workspace: boolean },
): Promise<TableResult> {
  const { app } = at;
  let table = await tableOf(app, servers);
  for (let shown = 0; shown < MOST_CHANGES; shown++) {
    if (table.rows.length === 0 && table.unlisted.length === 0) return { kind: "empty" };
    const answer = await answerTo(at, table, workspace);
    if (answer === undefined) return { kind: "declined" };
    const now = await listedAgain(at, servers);
    // guard: table-shown
    if (!isSameTable(table, now)) {
      tell(
        "\nThe tools or the rules have changed since the table was shown. This is the table now:",
      );
      table = now;
      continue;
    }
    return await write(at, table, { ...answer, workspace });
  }
  tell("The tools keep changing, so nothing is allowed");
  return { kind: "declined" };
}

/**
 * Offers to start new servers, and shows the table of their tools. Returns lines about the result.
 */
export async function offerTable(
  at: CommandContext,
  servers: readonly string[],
  workspace: boolean,
): Promise<readonly string[]> {
  if (servers.length === 0) return [];
  const [count, their] = servers.length === 1 ? ["this server", "its"] : [
    `these ${servers.length} servers`,
    "their",
  ];
  const question = `\nStart ${count} now, to decide about all ${their} tools in one table?`;
  if (!await agrees(question, at)) {
    return [`Each tool asks at its first use. \`pml rules table\` shows the table later`];
  }
  await at.app.policy.reload();
  await startServers(at, servers);
  const result = await askTable(at, { servers, workspace });
  return [result.kind === "accepted" ? result.written : "No rule was written: each tool asks"];
}

/** Starts servers and waits for their tools. The table names the reason for each that fails. */
export async function startServers(at: CommandContext, servers: readonly string[]): Promise<void> {
  await Promise.allSettled(servers.map((name) => prepare(at, name)));
}

/** Asks the servers for their tools again, because the answer covers only the shown definitions. */
async function listedAgain(at: CommandContext, servers: readonly string[]): Promise<ServerTable> {
  const { app } = at;
  const ready = app.servers.states().filter(({ state }) => state === "ready");
  await app.policy.reload();
  for (const name of servers) {
    if (ready.some((one) => one.name === name)) await forgetLists(app, name);
  }
  await startServers(at, servers);
  return await tableOf(app, servers);
}

/** The user's answer to a table. */
interface TableAnswer {
  /** The decisions that differ from the proposed ones. */
  readonly chosen: ReadonlyMap<ToolId, RuleList>;
  /** The tools whose texts were shown. */
  readonly read: ReadonlySet<ToolId>;
}

/** Asks about a table. Returns undefined if the user declines. */
async function answerTo(
  { app, signal }: CommandContext,
  table: ServerTable,
  workspace: boolean,
): Promise<TableAnswer | undefined> {
  const chosen = new Map<ToolId, RuleList>();
  const read = new Set<ToolId>();
  const show = () => tell(["", ...tableLines(table, chosen), ""].join("\n"));
  const path = workspace ? app.policy.rulesFile : app.loaded().person.path;
  const reach = reachText({ path, isOfUser: !workspace }, app.loaded());
  tell("\nWhat the tools may do without a question. PML proposes by their definitions:");
  show();
  for (;;) {
    const count = changedRows(table.rows, chosen).length;
    const rules = count === 0
      ? "Accept, without a rule?"
      : `Write ${counted(count, "rule")} ${reach}?`;
    const reply = await askKey(rules, { answers: ANSWERS, otherwise: "decline", signal });
    if (reply === "accept") return { chosen, read };
    if (reply === "decline" || reply === "cancelled") return undefined;
    if (reply === "texts") {
      const line = await askWord("Numbers of tools, such as 1-3,7, or all", signal);
      for (const row of rowsIn(table.rows, line ?? "")) {
        tell(textsOf(row));
        read.add(row.id);
      }
      continue;
    }
    const line = await askWord("Numbers and a decision, such as `1-3,7 ask` or `all ask`", signal);
    const [, which = "", list] = EDIT.exec(line ?? "") ?? [];
    for (const row of rowsIn(table.rows, which)) {
      // guard: table-unread
      if (list === "allow" && row.isMarked && !read.has(row.id)) {
        tell(`${visible(row.id, 200)} has unusual texts: read them first (t)`);
        continue;
      }
      chosen.set(row.id, list as RuleList); // the pattern has only these words
    }
    show();
  }
}

/** Writes the rules in one edit, and pins the definitions that were shown. */
async function write(
  at: CommandContext,
  { rows }: ServerTable,
  { chosen, read, workspace }: TableAnswer & { readonly workspace: boolean },
): Promise<TableResult> {
  const { app } = at;
  const changed = changedRows(rows, chosen);
  const rules = Map.groupBy(changed, ([, list]) => list);
  const change = await rulesChange(app, {
    workspace,
    rules: [...rules].map(([list, all]) => ({ list, rules: all.map(([{ id }]) => id) })),
  });
  await pinShown(app, rows);
  const shown = rows.filter(({ id }) => read.has(id)).map(({ hash }) => hash);
  const { approvals, always } = await app.callPath();
  await approvals.markRead(shown);
  const allowed = changed.filter(([, list]) => list === "allow").map(([{ id }]) => id);
  // A rule ends if its tool no longer only reads.
  const effects = allowed.flatMap((id) => {
    const definition = app.catalog.get(id)?.own;
    return definition === undefined ? [] : [{ id, effect: effectOf(definition) }];
  });
  await always.multiTool.add(change.path, effects);
  if (change.diff !== "") await change.write();
  await app.policy.reload();
  await recordAction(at, "table accepted", { file: change.path, allowed, rules: changed.length });
  const reach = reachText({ path: change.path, isOfUser: !workspace }, app.loaded());
  const asking = rows.filter(({ present }) => present === "ask").length;
  const written = changed.length === 0
    ? `No rule was written: ${
      asking === rows.length ? "all of these tools ask" : "the table stays as it was"
    }`
    : `${counted(changed.length, "rule")} written ${reach}`;
  return { kind: "accepted", rules: changed.length, written };
}

/** Pins the shown definitions, so that another definition of a tool asks in spite of its rule. */
async function pinShown(app: App, rows: readonly TableRow[]): Promise<void> {
  const pins = await app.pins();
  for (const { id } of rows) {
    const tool = app.catalog.get(id);
    const identity = tool && await app.directory.at(splitToolId(id).server).identity();
    if (tool === undefined || identity === undefined) continue;
    try {
      if (await pins.unapproved(identity) === undefined) {
        await pins.unapprovedTool(identity, tool.own);
      }
    } catch (error) {
      // The first call compares and pins it, as without a table.
      tell(`warning: cannot pin ${visible(id, 200)}: ${asPmlError(error).message}`);
    }
  }
  await pins.settled();
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

/** Returns the rows with these numbers: `all`, or numbers and ranges separated by commas. */
export function rowsIn(rows: readonly TableRow[], text: string): readonly TableRow[] {
  if (text.trim() === "all") return rows;
  const numbers = text.split(",").flatMap((part) => {
    const [, from, to = from] = /^\s*(\d{1,5})(?:-(\d{1,5}))?\s*$/.exec(part) ?? [];
    if (from === undefined) return [];
    const [first, last] = [Number(from), Math.min(Number(to), rows.length)];
    return Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => first + at);
  });
  return [...new Set(numbers)].flatMap((number) => rows[number - 1] ?? []);
}

function textsOf({ id, texts }: TableRow): string {
  const lines = texts.length === 0 ? ["  no texts that reach a model"] : texts;
  return ["", visible(id, 200), ...lines.map((line) => `  ${unhidden(line)}`)].join("\n");
}

/**
 * `pml rules`: lists all rules with the files that contain them and their last use, and the answers
 * for sessions; removes a rule, or ends such an answer.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { defaultRules, DEFAULTS_SOURCE, type Rules } from "../config/rules.ts";
import { counted } from "../core/amounts.ts";
import { defined, visible } from "../core/json.ts";
import { toolId } from "../core/tool_id.ts";
import { WHOLE_SERVER } from "../search/catalog.ts";
import { reachText } from "../policy/rule_file.ts";
import { RULE_LISTS, type RuleList } from "../policy/rule_lists.ts";
import { revokeSessionAnswer, sessionAnswersIn } from "../policy/session_files.ts";
import { type CommandContext, recordAction, type Shown, type Typed } from "./_command_context.ts";
import { misnamed, subcommandOf } from "./_failure.ts";
import { removeRule, ruleOf } from "./_rules.ts";
import { tableOf, tableValue } from "./_server_table.ts";
import { askTable, startServers } from "./_table_question.ts";
import { needPerson } from "./_terminal.ts";
import { whyUncovered } from "./_unmet_rules.ts";
import { JournalReader } from "./journal_reader.ts";

/** A rule, as `pml rules --json` prints it. */
export interface RuleRow {
  readonly rule: string;
  readonly list: RuleList;
  /** The path of its file; for default rules a path in PML's own code. */
  readonly source: string;
  /** The calls or users that it applies to. */
  readonly reach: "user" | "workspace" | "parent" | "identity" | "company" | "default";
  readonly identity?: string;
  /** Why it does not apply as it is written. */
  readonly note?: string;
}

/** Rules of one source, with a heading. */
interface RuleGroup {
  readonly title: string;
  readonly rows: readonly RuleRow[];
}

/** The sources of rules. Answers for sessions are no rules. */
const SOURCES: readonly ((app: App) => readonly RuleGroup[])[] = [
  companyRules,
  fileRules,
  identityRules,
  builtInRules,
];

/** Lists the rules, or removes one. */
export async function rules(at: CommandContext, typed: Typed): Promise<Shown> {
  const { words } = typed;
  if (words.length === 0) return await listRules(at);
  const run = subcommandOf<() => Promise<Shown>>("rules", words, {
    list: [() => listRules(at), 0],
    end: [() => endSession(at, words[1] ?? ""), 1],
    remove: [() => removeRule(at, { ...typed, rule: ruleOf(words[1]) }), 1],
    table: [() => showTable(at, typed), 0, Infinity],
  });
  return await run();
}

/**
 * Starts servers and shows the table of their tools; without names, of all servers that files define.
 * `--json` prints it.
 */
async function showTable(
  at: CommandContext,
  { words: [, ...named], json }: Typed,
): Promise<Shown> {
  const { app } = at;
  const all = app.config().servers.map(({ name }) => name);
  const other = named.find((name) => !app.directory.has(name));
  if (other !== undefined) {
    throw misnamed("show the table of", other, { why: "there is no such server", known: all });
  }
  const servers = named.length > 0 ? named : all;
  if (!json) needPerson("Cannot ask about the table");
  await startServers(at, servers);
  if (json) return { value: tableValue(await tableOf(app, servers)) };
  const isShared = (name: string) => !app.policy.fileFor(toolId(name, WHOLE_SERVER)).isOfUser;
  const lines: string[] = [];
  for (const [workspace, own] of Map.groupBy(servers, isShared)) {
    const result = await askTable(at, { servers: own, workspace });
    lines.push(result.kind === "accepted" ? result.written : "No rule was written");
  }
  return { value: { servers }, text: lines.join("\n") || "No server has tools to decide about" };
}

/** Returns all rules by their sources. */
export function ruleGroups(app: App): readonly RuleGroup[] {
  return SOURCES.flatMap((source) => source(app)).filter(({ rows }) => rows.length > 0);
}

/** Returns the lines of rules, by their sources. `after` returns a text for the end of a line. */
export function ruleLines(app: App, after: (row: RuleRow) => string = () => ""): readonly string[] {
  return ruleGroups(app).flatMap(({ title, rows }) => [
    title,
    ...rows.map((row) => {
      const { list, rule, note } = row;
      const end = [after(row), note].filter(Boolean).join("; ");
      return `  ${list.padEnd(5)}  ${visible(rule, 200).padEnd(40)}  ${end}`.trimEnd();
    }),
  ]);
}

async function listRules({ app }: CommandContext): Promise<Shown> {
  const rows = ruleGroups(app).flatMap((group) => group.rows);
  const used = await lastUses(app.config().home);
  const usedAt = (row: RuleRow) => used.get(useKey(row.source, row.rule)) ?? null;
  const text = ruleLines(app, (row) => {
    const at = usedAt(row);
    return at === null ? "no call in the journal" : `last used ${at}`;
  });
  const { policy } = app;
  const isBroken = app.config().problem !== undefined;
  const sessions = await sessionAnswersIn(app.config().home, app.log);
  const answers = sessions.map(({ id, rule, client, workspace, expires }) => {
    const until = new Date(expires).toTimeString().slice(0, 5);
    const where = `${visible(client, 100)} in ${visible(workspace, 200)}, until ${until}`;
    return `  allow  ${visible(rule, 200).padEnd(40)}  ${where}: \`pml rules end ${shortId(id)}\``;
  });
  if (answers.length > 0) answers.unshift("Answers for a session, which end with its connection");
  return {
    value: { rules: rows.map((row) => ({ ...row, last_used: usedAt(row) })), sessions },
    text: [...text, ...answers].join("\n"),
    note: isBroken
      ? "The configuration has an error, so every call is denied: see `pml doctor`"
      : `${counted(rows.length, "rule")}; \`pml why SERVER:TOOL\` shows which one decides` +
        (policy.now.config.trusted || app.loaded().file === undefined
          ? ""
          : ". The workspace file is not trusted (`pml trust`)"),
  };
}

function shortId(id: string): string {
  return id.slice(0, 12);
}

/** Ends the answers for sessions whose ids begin like this, or that cover exactly this rule. */
async function endSession(at: CommandContext, typed: string): Promise<Shown> {
  const { home } = at.app.config();
  const answers = await sessionAnswersIn(home, at.app.log);
  const isId = /^[0-9a-f]{6,64}$/.test(typed);
  const ended = answers.filter(({ id, rule }) => isId ? id.startsWith(typed) : rule === typed);
  if (ended.length === 0) {
    throw misnamed("end the answer", typed, {
      why: "no session has it",
      known: answers.map(({ rule }) => rule),
      otherwise: "`pml rules` shows the answers with their ids",
    });
  }
  for (const { id, tool } of ended) {
    revokeSessionAnswer(home, id);
    await recordAction(at, "session ended", { tool });
  }
  const names = ended.map(({ rule }) => visible(rule, 200)).join(", ");
  return { value: { ended: ended.map(({ id }) => id) }, text: `${names} asks again from now on` };
}

/** Returns the times of the last uses of rules, by the file and the text of a rule. */
async function lastUses(home: string): Promise<ReadonlyMap<string, string>> {
  const times = new Map<string, string>();
  using reader = new JournalReader(home);
  for await (const { record } of reader.read()) {
    if (record?.kind !== "start") continue;
    const { at, rule, source } = record;
    if (typeof at !== "string" || typeof rule !== "string") continue;
    const key = useKey(String(source), rule);
    if ((times.get(key) ?? "") < at) times.set(key, at);
  }
  return times;
}

/** The journal contains no arguments, so all rules with exact arguments of one tool share an entry. */
function useKey(source: string, rule: string): string {
  return JSON.stringify([source, rule.replace(/\(\{.*/s, "({...})")]);
}

function fileRules(app: App): readonly RuleGroup[] {
  const loaded = app.loaded();
  const { person, file, parents } = loaded;
  const { trusted } = app.config();
  const own = group(reachText({ path: person.path, isOfUser: true }, loaded), person, "user");
  const shared = file?.permissions === undefined ? [] : [
    group(
      reachText({ path: file.path, isOfUser: false }, loaded),
      { ...file, permissions: file.permissions },
      "workspace",
    ),
  ];
  const above = parents.flatMap(({ path, permissions }) => {
    const title = `${path}, a folder above, without its allow rules`;
    return permissions === undefined
      ? []
      : [group(title, { path, permissions: { ...permissions, allow: [] } }, "parent")];
  });
  return [own, ...shared, ...above].map(({ title, rows }) => ({
    title: title.replace(/^in /, ""),
    rows: rows.map((row) => ({ ...row, ...defined({ note: noteOf(row) }) })),
  }));

  function noteOf({ rule, list, reach }: RuleRow): string | undefined {
    if (list !== "allow") return undefined;
    if (reach === "workspace" && !trusted) return "asks: the file is not trusted";
    const line = person.permissions.allow.find(({ pattern }) => pattern.text === rule);
    const reason = reach === "user" && line !== undefined ? whyUncovered(app, line) : undefined;
    return reason === undefined ? undefined : `does not apply here: ${visible(reason, 400)}`;
  }
}

function builtInRules(app: App): readonly RuleGroup[] {
  const { file } = app.loaded();
  if (app.config().trusted && file?.permissions !== undefined) return [];
  const permissions = defaultRules();
  return [group("default rules of PML", { path: DEFAULTS_SOURCE, permissions }, "default")];
}

function companyRules(app: App): readonly RuleGroup[] {
  const { files = [] } = app.config().narrowing?.company ?? {};
  return files.map(({ path, rules }) =>
    group(`${path}, the policy of this machine`, { path, permissions: rules }, "company")
  );
}

function identityRules(app: App): readonly RuleGroup[] {
  const { others, person: { path } } = app.loaded();
  return [...others?.identities.values() ?? []].map(({ name, permissions }) => {
    const { title, rows } = group(
      `${path}, for ${visible(name)}`,
      { path, permissions },
      "identity",
    );
    return { title, rows: rows.map((row) => ({ ...row, identity: name })) };
  });
}

function group(
  title: string,
  { path, permissions }: { readonly path: string; readonly permissions: Rules },
  reach: RuleRow["reach"],
): RuleGroup {
  const rows = RULE_LISTS.toReversed().flatMap((list) =>
    permissions[list].map(({ pattern }) => ({ rule: pattern.text, list, source: path, reach }))
  );
  return { title, rows };
}

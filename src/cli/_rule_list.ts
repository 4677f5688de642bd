/**
 * `pml rules`: lists all rules with the files that contain them and their last use, and the answers
 * for sessions; removes a rule, or ends such an answer.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { defaultRules, DEFAULTS_SOURCE, type Rules } from "../config/rules.ts";
import { counted } from "../core/amounts.ts";
import { visible, withoutUndefined } from "../core/json.ts";
import { parsePattern } from "../core/pattern.ts";
import { toolId } from "../core/tool_id.ts";
import { WHOLE_SERVER } from "../search/catalog.ts";
import { reachText } from "../policy/rule_file.ts";
import { RULE_LISTS, type RuleList } from "../policy/rule_lists.ts";
import { revokeSessionAnswer, sessionAnswersIn } from "../policy/session_files.ts";
import {
  type CommandContext,
  type CommandInput,
  type CommandOutput,
  recordAction,
} from "./_command_context.ts";
import { subcommandOf, unknownNameError } from "./_failure.ts";
import { parseRule, removeRule } from "./_rules.ts";
import { readTable, tableValue } from "./_server_table.ts";
import { askTable, startUntilEnter } from "./_table_question.ts";
import { assertTerminal } from "./_terminal.ts";
import { unmetRule, whyUncovered } from "./_unmet_rules.ts";
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

/** The sources of rules. Answers for sessions are not rules. */
const SOURCES: readonly ((app: App) => readonly RuleGroup[])[] = [
  companyRules,
  fileRules,
  identityRules,
  builtInRules,
];

/** Lists the rules, or removes one. */
export async function rules(context: CommandContext, input: CommandInput): Promise<CommandOutput> {
  const { words } = input;
  if (words.length === 0) return await listRules(context);
  const run = subcommandOf<() => Promise<CommandOutput>>("rules", words, {
    list: [() => listRules(context), 0],
    end: [() => endSessionAnswers(context, words[1] ?? ""), 1],
    remove: [() => removeRule(context, { ...input, rule: parseRule(words[1]) }), 1],
    table: [() => showTable(context, input), 0, Infinity],
  });
  return await run();
}

/**
 * Starts the named servers, or all that files define, and shows the table of their tools. `--json`
 * prints the table.
 */
async function showTable(
  context: CommandContext,
  { words: [, ...names], json }: CommandInput,
): Promise<CommandOutput> {
  const { app } = context;
  const definedNames = app.config().servers.map(({ name }) => name);
  const unknown = names.find((name) => !app.directory.has(name));
  if (unknown !== undefined) {
    throw unknownNameError("show the table of", unknown, {
      why: "there is no such server",
      known: definedNames,
    });
  }
  const servers = names.length > 0 ? names : definedNames;
  if (!json) assertTerminal("Cannot ask about the table");
  await startUntilEnter(context, servers);
  if (json) return { value: tableValue(await readTable(app, servers)) };
  const isShared = (name: string) => !app.policy.fileFor(toolId(name, WHOLE_SERVER)).isOfUser;
  const lines: string[] = [];
  for (const [workspace, group] of Map.groupBy(servers, isShared)) {
    const result = await askTable(context, { servers: group, workspace });
    lines.push(result.kind === "accepted" ? result.written : "No rule was written");
  }
  return { value: { servers }, text: lines.join("\n") || "No server has tools to decide about" };
}

/** Returns all rules, grouped by their sources. */
export function ruleGroups(app: App): readonly RuleGroup[] {
  return SOURCES.flatMap((source) => source(app)).filter(({ rows }) => rows.length > 0);
}

/** Returns lines of rules, grouped by their sources. `endOf` returns a text for the end of a line. */
export function ruleLines(app: App, endOf: (row: RuleRow) => string = () => ""): readonly string[] {
  return ruleGroups(app).flatMap(({ title, rows }) => [
    title,
    ...rows.map((row) => {
      const { list, rule, note } = row;
      const end = [endOf(row), note].filter(Boolean).join("; ");
      return `  ${list.padEnd(5)}  ${visible(rule, 200).padEnd(40)}  ${end}`.trimEnd();
    }),
  ]);
}

async function listRules({ app }: CommandContext): Promise<CommandOutput> {
  const rows = ruleGroups(app).flatMap((group) => group.rows);
  const used = await lastUses(app.config().home);
  const usedAt = (row: RuleRow) => used.get(useKey(row.source, row.rule)) ?? null;
  const text = ruleLines(app, (row) => {
    const lastUse = usedAt(row);
    return lastUse === null ? "no call in the journal" : `last used ${lastUse}`;
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

/** Ends the answers for sessions whose ids begin with the typed text, or whose rule equals it. */
async function endSessionAnswers(context: CommandContext, typed: string): Promise<CommandOutput> {
  const { home } = context.app.config();
  const answers = await sessionAnswersIn(home, context.app.log);
  const isId = /^[0-9a-f]{6,64}$/.test(typed);
  const ended = answers.filter(({ id, rule }) => isId ? id.startsWith(typed) : rule === typed);
  if (ended.length === 0) {
    throw unknownNameError("end the answer", typed, {
      why: "no session has it",
      known: answers.map(({ rule }) => rule),
      otherwise: "`pml rules` shows the answers with their ids",
    });
  }
  await endAnswers(context, ended);
  const names = ended.map(({ rule }) => visible(rule, 200)).join(", ");
  return { value: { ended: ended.map(({ id }) => id) }, text: `${names} asks again from now on` };
}

/** Ends answers for sessions. */
export async function endAnswers(
  context: CommandContext,
  answers: Awaited<ReturnType<typeof sessionAnswersIn>>,
): Promise<void> {
  for (const { id, tool } of answers) {
    revokeSessionAnswer(context.app.config().home, id);
    await recordAction(context, "session ended", { tool });
  }
}

/** Returns the times of the last uses of rules, by the file and the text of a rule. */
export async function lastUses(home: string): Promise<ReadonlyMap<string, string>> {
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

/**
 * Returns the key of a rule in `lastUses()`. The journal contains no arguments, so all rules with exact
 * arguments of one tool share a key.
 */
export function useKey(source: string, rule: string): string {
  return JSON.stringify([source, rule.replace(/\(\{.*/s, "({...})")]);
}

function fileRules(app: App): readonly RuleGroup[] {
  const loaded = app.loaded();
  const { userConfig, file, parents } = loaded;
  const { trusted } = app.config();
  const userRules = group(
    reachText({ path: userConfig.path, isOfUser: true }, loaded),
    userConfig,
    "user",
  );
  const workspaceRules = file?.permissions === undefined ? [] : [
    group(
      reachText({ path: file.path, isOfUser: false }, loaded),
      { ...file, permissions: file.permissions },
      "workspace",
    ),
  ];
  const parentRules = parents.flatMap(({ path, permissions }) => {
    const title = `${path}, a folder above, without its allow rules`;
    return permissions === undefined
      ? []
      : [group(title, { path, permissions: { ...permissions, allow: [] } }, "parent")];
  });
  return [userRules, ...workspaceRules, ...parentRules].map(({ title, rows }) => ({
    title: title.replace(/^in /, ""),
    rows: rows.map((row) => ({ ...row, ...withoutUndefined({ note: noteOf(row) }) })),
  }));

  function noteOf({ rule, list, reach, source }: RuleRow): string | undefined {
    const line = { pattern: parsePattern(rule), source };
    const isOwn = list === "allow" && reach === "user";
    const reason = isOwn ? whyUncovered(app, line) : undefined;
    if (reason !== undefined) return `does not apply here: ${visible(reason, 400)}`;
    const isUntrusted = list === "allow" && reach === "workspace" && !trusted;
    const notes = [
      ...isUntrusted ? ["asks: the file is not trusted"] : [],
      ...reach === "parent" ? [] : [unmetRule(app, line, list)?.note],
    ].filter((note) => note !== undefined);
    return notes.length === 0 ? undefined : visible(notes.join("; "), 600);
  }
}

function builtInRules(app: App): readonly RuleGroup[] {
  const { file } = app.loaded();
  if (app.config().trusted && file?.permissions !== undefined) return [];
  const permissions = defaultRules();
  return [group("default rules of PML", { path: DEFAULTS_SOURCE, permissions }, "default")];
}

function companyRules(app: App): readonly RuleGroup[] {
  const { files = [] } = app.config().restrictions?.company ?? {};
  return files.map(({ path, rules }) =>
    group(`${path}, the policy of this machine`, { path, permissions: rules }, "company")
  );
}

function identityRules(app: App): readonly RuleGroup[] {
  const { access, userConfig: { path } } = app.loaded();
  return [...access?.identities.values() ?? []].map(({ name, permissions }) => {
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

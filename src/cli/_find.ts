/**
 * `pml tools`, `pml search` and `pml why`: show servers and tools, and the decisions of the rules.
 *
 * @module
 */

import { findNameOwner } from "../app/app_capabilities.ts";
import { forgetLists } from "./fresh_lists.ts";
import type { App } from "../app/app.ts";
import type { Finder } from "../gateway/finder.ts";
import type { Verdict } from "../protocol/verdict.ts";
import { asPmlError, PmlError } from "../core/errors.ts";
import {
  indentLines,
  type JsonObject,
  memberOf,
  quoted,
  visible,
  withoutUndefined,
} from "../core/json.ts";
import { matches, narrowness, PART_RULE_NAMES, READS_RULE_NAME } from "../core/pattern.ts";
import { tokensOf } from "../core/tokens.ts";
import { readingOf, type ToolReading } from "../policy/tool_reading.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import {
  isServerName,
  parseToolId,
  shownId,
  splitToolId,
  type ToolId,
  toolId,
} from "../core/tool_id.ts";
import { type CallEffect, callEffect, listedEffects, type ShownEffect } from "./_call_effect.ts";
import { parseArguments, parseCount, parseId, parseObject, takeObject } from "./_arguments.ts";
import { noteText } from "../search/notes.ts";
import { startHint, suggestionFor, usage } from "./_failure.ts";
import { hasLog } from "./_logs.ts";
import {
  askForTools,
  type CommandContext,
  type CommandInput,
  type CommandOutput,
  prepare,
  withWaitLine,
} from "./_command_context.ts";
import { paintVerdicts } from "./_paint.ts";
import { readersOf, readersText, uncoveredLines } from "./_readers.ts";
import type { CatalogTool } from "../search/catalog.ts";
import { findEffect } from "./_server_table.ts";
import { tokensLine, toolPage } from "./_tool_page.ts";

type OfferedTools = Awaited<ReturnType<Finder["offeredTools"]>>;

/** The note about hits that may not match the query. */
const LOOSE_MATCHES = "These tools share few words with the query; try other words";

/** Lists servers and their tools, or shows one tool in full. */
export async function toolsCommand(
  context: CommandContext,
  { words: [name], refresh }: CommandInput,
): Promise<CommandOutput> {
  const { app } = context;
  const server = name?.split(":", 1)[0];
  if (refresh === true) await forgetLists(app, server);
  const offered = server === undefined ? [] : await (await app.finder()).offeredTools(server);
  if (name?.includes(":")) {
    return await showTool(context, { id: parseId(name, app.servers), offered });
  }
  if (name !== undefined && offered.length > 0) return showOffer(app, { name, offered });
  await prepareShown(context, name, refresh || undefined);
  await app.servers.noteUnreached(name);
  const servers = app.servers.states()
    .filter((state) => name === undefined || state.name === name)
    .map((state) => ({ ...state, tools: app.catalog.toolsOf(state.name).map(listItemMaker(app)) }));
  const texts = servers.map((server) =>
    listText(`${server.name} (${server.origin}, ${server.kind}) ${stateText(server)}`, server.tools)
  );
  return {
    value: { servers },
    text: texts.join("\n\n"),
    paint: paintVerdicts,
    note: startingText(servers),
  };
}

/** Loads the tools of one server or of all, to show them. A failure suggests actions to the user. */
async function prepareShown(
  context: CommandContext,
  server: string | undefined,
  waitsForAll?: true,
): Promise<void> {
  await prepare(context, server, { waitsForAll }).catch((cause) => {
    throw server === undefined ? cause : withAction(context.app, asPmlError(cause), server);
  });
}

/** Returns the error of a server that does not start, with the possible actions in its hint. */
export function withAction({ servers }: App, error: PmlError, name: string): PmlError {
  const { code, message, detail, cause } = error;
  if (code !== "UPSTREAM_DOWN") return error;
  const kind = servers.states().find((state) => state.name === name)?.kind;
  const look = hasLog(kind) ? `See \`pml logs ${name}\`` : "Check that it runs at its address";
  const actions = `${look}; correct its definition, or \`pml remove ${name}\``;
  return new PmlError(code, message, {
    hint: [startHint(error), actions].filter(Boolean).join(". "),
    cause,
    ...withoutUndefined({ detail }),
  });
}

function listText(head: string, tools: readonly Parameters<typeof lineOf>[0][]): string {
  return [head, ...tools.map((tool) => `  ${lineOf(tool)}`)].join("\n");
}

/** Returns the state of a server, with the reason if it has one. */
export function stateText(
  { state, why }: { readonly state: string; readonly why?: string },
): string {
  const word = state === "unknown" ? "not ready yet" : state;
  return why === undefined ? word : `${word}: ${indentLines(why, 400)}`;
}

/** Returns a text about the servers that did not answer in time; "" without such servers. */
function startingText(
  servers: readonly { readonly name: string; readonly state: string }[],
): string {
  const names = servers.filter(({ state }) => state === "unknown").map(({ name }) => name);
  if (names.length === 0) return "";
  return `Not ready yet: ${names.join(", ")}. \`pml tools --refresh\` installs and waits for all`;
}

/** Returns a text about the servers that failed, so that their tools are missing; "" without them. */
function failedText(
  troubles: readonly { readonly name: string; readonly state: string }[],
): string {
  const names = troubles.filter(({ state }) => state === "failed").map(({ name }) => name);
  return names.length === 0 ? "" : `Failed: ${names.join(", ")}. \`pml doctor\` shows why`;
}

/** Returns a text about the servers whose tools are unknown; "" without such servers. */
export function unlistedText({ servers }: App): string {
  return [startingText(servers.states()), failedText(servers.troubles())].filter(Boolean)
    .join("\n");
}

/** Finds tools for a task. */
export async function search(
  context: CommandContext,
  { words, server, limit = "10" }: CommandInput,
): Promise<CommandOutput> {
  const query = words.join(" ").trim();
  if (query === "") {
    throw usage("Cannot search: the query is empty", "Write it like `pml search read a file`");
  }
  const most = parseCount(limit, 100);
  const { app } = context;
  await prepare(context, server);
  const { mode, hits, isLoose, notes } = await withWaitLine(
    "searching",
    async () =>
      await (await app.finder()).search(query, {
        server,
        limit: most,
        allowed: (id) => app.policy.now.judge(id).kind !== "deny",
      }),
  );
  // With `--server`, PML searches only this server, so the states of others do not matter.
  const isSearched = ({ name }: { readonly name: string }) => [undefined, name].includes(server);
  const missingPart = mode === "hybrid" ? undefined : await (await app.finder()).missingPart();
  const itemOf = listItemMaker(app);
  const items = hits.map((hit) => ({
    ...itemOf(hit),
    origin: hit.server.origin,
    approved: hit.server.asksFirst !== true,
    score: hit.score,
    covered: hit.covered,
  }));
  return {
    value: { mode, loose: isLoose, notes, hits: items },
    text: items.map((item) =>
      lineOf(item, `[${originText(item)}, ${Math.round(item.covered * 100)}%] `)
    ).join("\n"),
    paint: paintVerdicts,
    note: [
      items.length === 0
        ? "Nothing matches; try other words, or `pml tools`"
        : isLoose && LOOSE_MATCHES,
      ...notes.map(noteText),
      startingText(app.servers.states().filter(isSearched)),
      failedText(app.servers.troubles().filter(isSearched)),
      ...(missingPart === undefined ? [] : [`Search works ${missingPart}`]),
    ].filter(Boolean).join("\n"),
  };
}

/**
 * Shows the effect that a call of a tool would have now, and the rule that decides. For an unknown
 * tool, the exit code is 1.
 */
export async function why(
  context: CommandContext,
  { words: [name = "", ...pairs] }: CommandInput,
): Promise<CommandOutput> {
  const { app } = context;
  const id = parseRuleName(name) ?? parseId(name, app.servers);
  const { server, tool: toolName } = splitToolId(id);
  await askForTools(context, { only: server });
  const listed = app.catalog.get(id);
  const tool = listed?.tool;
  const args = await readArguments(app, { id, pairs, tool });
  const forbidden = app.policy.whyForbidden(server);
  const state = app.servers.states().find(({ name }) => name === server);
  const approved = await readApprovals(app, id);
  const tokens = tool && tokensOf(JSON.stringify(tool));
  const readers = toolName === READS_RULE_NAME ? readersOf(app, server) : undefined;
  const reading = listed && await findReading(app, listed);
  const note = forbidden || tool || toolName.startsWith("@")
    ? ""
    : await missingText(app, { server, toolName, state });
  const own = callEffect(app, { id, args, tool, state, isListed: note === "" });
  const { rule, source, depends, reason, byRules } = own;
  const decided = byRules ?? own.effect;
  const uncovered = decided === "asks" ? uncoveredRule(app, id) : undefined;
  const { effect = own.effect, ruled } = readerEffects(app, { server, readers, own });
  const decision = forbidden === undefined ? `by ${ruleText({ rule, source })}` : rule;
  const stateLines = state === undefined ? [] : [`the server: ${stateText(state)}`];
  const isByState = byRules !== undefined && reason === undefined;
  const isUnknown = note !== "" && state === undefined && source === "defaults";
  return {
    code: note ? 1 : 0,
    value: {
      ...{ tool: id, verdict: effect, ...withoutUndefined({ reason, by_rules: byRules }) },
      ...{ rule, source, depends, state: state?.state, approved, tokens },
      ...withoutUndefined({ uncovered, reading, covers: readers }),
      ...ruled.length > 0 && { tools: ruled },
    },
    text: isUnknown ? "" : [
      `${id}: ${effect}`,
      ...isByState ? stateLines : reason === undefined ? [] : [reason],
      ...ruleNameLines(name, id),
      (byRules === undefined ? "" : `the rules alone: ${byRules}, `) +
      (ruled.length === 0 ? "" : `without a rule for the tool: ${own.effect}, `) + decision,
      ...ruled.map((each) =>
        `${server}:${each.tool}: ${each.verdict}, ${each.reason ?? `by ${ruleText(each)}`}`
      ),
      ...(uncovered === undefined ? [] : [uncoveredText(uncovered)]),
      ...addressLines(toolName, { server, decided }),
      ...(readers === undefined ? uncoveredLines(app, id) : [readersText(server, readers)]),
      ...(depends ?? []).map(dependsText),
      ...isByState ? [] : stateLines,
      ...approvalLines(approved),
      ...(tokens === undefined ? [] : [tokensLine(tokens)]),
      ...(reading === undefined ? [] : [readingText(reading)]),
    ].join("\n  "),
    note,
  };
}

/**
 * Returns the tools that a rule `SERVER:@reads` covers and that have another effect or rule: a rule for
 * one tool is narrower. `effect` is the effect for all covered tools, if it is the same.
 */
function readerEffects(
  app: App,
  { server, readers = [], own }: {
    readonly server: string;
    readonly readers: readonly string[] | undefined;
    readonly own: ShownEffect;
  },
) {
  const effectFor = listedEffects(app);
  const tools = app.catalog.toolsOf(server).map((entry) => {
    const { effect, rule, source, reason } = effectFor(entry);
    const facts = { tool: splitToolId(entry.id).tool, verdict: effect, rule, source };
    return { ...facts, ...withoutUndefined({ reason }) };
  }).filter(({ tool }) => readers.includes(tool));
  const ruled = tools.filter((each) =>
    each.rule !== own.rule || each.source !== own.source || each.verdict !== own.effect
  );
  const effects = new Set(tools.map(({ verdict }) => verdict));
  return {
    ruled,
    ...withoutUndefined({ effect: effects.size === 1 ? [...effects][0] : undefined }),
  };
}

/** Returns a line for each approved part of a tool or its server. */
function approvalLines(approved: Readonly<Record<string, string>>): readonly string[] {
  return Object.entries(approved).map(([part, value]) =>
    `approved ${part}: ${visible(value, 400)}`
  );
}

/** Returns a line if rules use another name for a tool than the user typed. */
function ruleNameLines(name: string, id: ToolId): readonly string[] {
  return [undefined, id].includes(parseToolId(name))
    ? []
    : [`in rules, ${quoted(name, 200)} has this name`];
}

/** Returns a line about the addresses of a server that no rule for its resources covers. */
function addressLines(
  part: string,
  { server, decided }: { readonly server: string; readonly decided: CallEffect },
): readonly string[] {
  return ["@resources", "@skills"].includes(part) && decided !== "denied"
    ? [`an address that ${quoted(server)} neither lists nor links asks each time`]
    : [];
}

/** An allow rule of the user's file that names the server of a tool and does not cover it. */
interface UncoveredRule {
  readonly rule: string;
  readonly source: string;
  readonly reason: string;
}

/** Finds the narrowest allow rule of the user's file that names a tool and does not cover it. */
function uncoveredRule(app: App, id: ToolId): UncoveredRule | undefined {
  const { users, config: { rules } } = app.policy.now;
  const reason = users.whyUncovered(id);
  const { path } = app.loaded().userConfig;
  const [line] = rules.allow.filter(({ pattern, source }) =>
    source === path && pattern.kind !== "any" && matches(pattern, id)
  ).sort((one, other) => narrowness(other.pattern) - narrowness(one.pattern));
  if (reason === undefined || line === undefined) return undefined;
  return { rule: line.pattern.text, source: line.source, reason };
}

function dependsText(rule: string): string {
  return `its arguments decide, by the rule ${quoted(rule, Infinity)}`;
}

function uncoveredText({ rule, source, reason }: UncoveredRule): string {
  return `the rule ${quoted(rule, Infinity)} in ${source} does not cover this server: ${reason}`;
}

/** Whether a tool only reads, and its effect in the table of new servers, which is stricter. */
interface ShownReading extends ToolReading {
  readonly table: { readonly effect: string; readonly note?: string };
}

/** Returns whether a tool only reads: of a module by its permissions, else by its definition. */
async function findReading(app: App, { id, own }: CatalogTool): Promise<ShownReading> {
  const { server, tool: name } = splitToolId(id);
  const isDerived = await app.directory.get(server).onlyReads(name).catch(() => undefined);
  const reading = isDerived === undefined
    ? readingOf(own)
    : { reads: app.policy.isReader(id), note: "by its permissions" };
  const { effect, note } = await findEffect(app, { id, own });
  return { ...reading, table: { effect, ...withoutUndefined({ note }) } };
}

/** Returns the text whether a tool only reads. */
function readingText({ reads, note, table }: ShownReading): string {
  const why = note === undefined ? "" : ` (${note})`;
  if (!reads) return `may do more than read${why}`;
  if (table.effect === "reads") return `only reads${why}`;
  const reason = table.note === undefined ? "" : `: ${table.note}`;
  return `only reads by its definition; \`pml rules table\` shows "${table.effect}"${reason}`;
}

/**
 * Returns the typed arguments, together with arguments that the user fixed in the definition of the
 * server. Returns undefined if the user typed none.
 */
async function readArguments(
  app: App,
  { id, pairs, tool }: {
    readonly id: ToolId;
    readonly pairs: readonly string[];
    readonly tool: ToolDefinition | undefined;
  },
): Promise<JsonObject | undefined> {
  const rest = [...pairs];
  const base = parseObject(takeObject(rest));
  const typed = parseArguments(rest, { base, schema: tool?.inputSchema ?? {} });
  const entry = app.directory.get(splitToolId(id).server);
  const call = { id, arguments: typed };
  const { arguments: fullArguments } = entry.whyBlocked() === undefined
    ? await app.servers.withSettings(call, entry)
    : call;
  return pairs.length > 0 ? fullArguments : undefined;
}

/** Returns a text if a server is unknown, or does not list the tool; otherwise "". */
async function missingText(
  app: App,
  { server, toolName, state }: {
    readonly server: string;
    readonly toolName: string;
    readonly state: { readonly state: string } | undefined;
  },
): Promise<string> {
  if (state === undefined) {
    // Requests the lists of the registries first, because one of them may have this name.
    await (await app.finder()).offeredTools(server);
    if (findNameOwner(app, server)) return "";
    const names = app.servers.states().map(({ name }) => name);
    return suggestionFor(server, {
      known: names,
      before: `There is no server ${quoted(server)} here`,
    });
  }
  const toolNames = app.catalog.toolsOf(server).map(({ tool: { name } }) => name);
  const before = `${quoted(server)} lists no tool ${quoted(toolName)}`;
  return state.state === "ready" ? suggestionFor(toolName, { known: toolNames, before }) : "";
}

/** Reads the approvals of a server and a tool, or the pins of their first use. */
async function readApprovals(app: App, id: ToolId): Promise<Readonly<Record<string, string>>> {
  const { server, tool } = splitToolId(id);
  const pins = await app.pins();
  await pins.state();
  const { version, integrity, tools = {} } = pins.pinOf(server) ?? {};
  const code = integrity ?? app.policy.approvedCode(server);
  return withoutUndefined({ version, code, tool: memberOf(tools, tool) });
}

/** Parses the name that rules use for another part of MCP, such as `github:@resources`. */
function parseRuleName(name: string): ToolId | undefined {
  const names = [...PART_RULE_NAMES, READS_RULE_NAME];
  const ruleName = names.find((each) => name.endsWith(`:${each}`));
  const server = name.slice(0, -1 - (ruleName?.length ?? 0));
  return ruleName !== undefined && isServerName(server) ? toolId(server, ruleName) : undefined;
}

/**
 * Returns the text for a rule. A rule of the user is a pattern and its file; a default rule is a text
 * already.
 */
function ruleText({ rule, source }: Pick<Verdict, "rule" | "source">): string {
  return /[:*]/.test(rule) ? `${quoted(rule, Infinity)} in ${source}` : `default: ${rule}`;
}

/** Shows the tools that a registry lists for a server that the user has not used here. */
function showOffer(
  app: App,
  { name, offered }: { readonly name: string; readonly offered: OfferedTools },
): CommandOutput {
  const tools = offered.map(listItemMaker(app));
  const head = `${name} (registry) never used here: the first call asks you`;
  const state = { name, origin: "registry", state: "offered", tools };
  return { value: { servers: [state] }, text: listText(head, tools) };
}

async function showTool(
  context: CommandContext,
  { id, offered }: { readonly id: ToolId; readonly offered: OfferedTools },
): Promise<CommandOutput> {
  const { app } = context;
  const offer = offered.find((each) => each.id === id);
  if (offer !== undefined) {
    const { name: _, ...definition } = offer.tool;
    const facts = { id, verdict: "asks", permissions: [] };
    const decision = ["asks, by the first use of a server of a registry asks"];
    return {
      value: { id, verdict: "asks", origin: "registry", ...definition },
      text: await toolPage(app, offer.tool, { ...facts, decision }),
    };
  }
  await prepareShown(context, splitToolId(id).server);
  const definition = await app.servers.shownDefinition(id);
  const { server, tool } = splitToolId(id);
  const shown = listedEffects(app)({ id, tool: definition });
  const { effect, rule, source, reason, byRules } = shown;
  const permissions = await app.directory.get(server).permissionLines(tool);
  const ownId = toolId(server, definition.name);
  const rules = ownId === id ? {} : { rules_name: id };
  const changes = withoutUndefined({ reason, by_rules: byRules });
  const decision = { id: ownId, ...rules, verdict: effect, ...changes, rule, source, permissions };
  const why = reason === undefined ? effect : `${effect}: ${reason}`;
  const by = `by ${ruleText(shown)}`;
  const facts = {
    ...decision,
    decision: byRules === undefined
      ? [`${effect}, ${by}`]
      : [why, `the rules alone: ${byRules}, ${by}`],
  };
  return {
    // Spread twice: PML's values come first, and fields of the server cannot replace them.
    value: { ...decision, ...definition, ...decision },
    text: await toolPage(app, definition, facts),
  };
}

function originText(
  { origin, approved }: { readonly origin: string; readonly approved: boolean },
): string {
  return approved ? origin : `${origin}, never used here`;
}

/** A tool of a list or of a search. */
interface ListedTool {
  readonly id: ToolId;
  readonly tool: ToolDefinition;
  readonly server: { readonly name: string; readonly asksFirst?: boolean };
}

/** Returns a function that returns the facts about a tool for its line. */
function listItemMaker(app: App) {
  const effectFor = listedEffects(app);
  return (listed: ListedTool) => ({
    id: shownId(listed),
    description: listed.tool.description ?? "",
    verdict: effectFor(listed).effect,
  });
}

/**
 * Returns one line for a tool. PML's own text comes before the server's description, so that no
 * description can imitate it.
 */
function lineOf(
  { id, description, verdict }: ReturnType<ReturnType<typeof listItemMaker>>,
  origin = "",
): string {
  const [first = ""] = description.split("\n");
  return `${id.padEnd(40)} ${verdict.padEnd(6)} ${origin}${visible(first, 100)}`;
}

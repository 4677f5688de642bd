/**
 * `pml tools`, `pml search` and `pml why`: show servers and tools, and the decisions of the rules.
 *
 * @module
 */

import { nameOwner } from "../app/app_capabilities.ts";
import { forgetLists } from "./fresh_lists.ts";
import type { App } from "../app/app.ts";
import type { Finder } from "../gateway/finder.ts";
import type { Verdict } from "../protocol/verdict.ts";
import { asPmlError, PmlError } from "../core/errors.ts";
import { defined, inset, type JsonObject, memberOf, quoted, visible } from "../core/json.ts";
import { matches, narrowness, PART_RULE_NAMES, READS_RULE_NAME } from "../core/pattern.ts";
import { tokensOf } from "../core/tokens.ts";
import { ENDED, MultiToolRules } from "../policy/multi_tool_rules.ts";
import { readingOf, type ToolReading } from "../policy/reading.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import {
  isServerName,
  parseToolId,
  shownId,
  splitToolId,
  type ToolId,
  toolId,
} from "../core/tool_id.ts";
import { limitOf, parseArguments, parseId, parseObject, takeObject } from "./_arguments.ts";
import { noteText } from "../search/notes.ts";
import { suggestionFor, usage } from "./_failure.ts";
import {
  askForTools,
  type CommandContext,
  prepare,
  type Shown,
  type Typed,
} from "./_command_context.ts";
import { paintVerdicts } from "./_paint.ts";
import { readersOf, readersText, uncoveredLines } from "./_readers.ts";
import { tokensLine, toolPage } from "./_tool_page.ts";

type Offered = Awaited<ReturnType<Finder["offered"]>>;

const LOOSE = "These share few words with the query; try others";
const SAYS = { allow: "runs", ask: "asks", deny: "denied" } as const;

/** Lists servers and their tools, or shows one tool in full. */
export async function toolsCommand(
  at: CommandContext,
  { words: [name], refresh }: Typed,
): Promise<Shown> {
  const { app } = at;
  const server = name?.split(":", 1)[0];
  if (refresh === true) await forgetLists(app, server);
  const offered = server === undefined ? [] : await (await app.finder()).offered(server);
  if (name?.includes(":")) return await showTool(at, { id: parseId(name, app.servers), offered });
  if (name !== undefined && offered.length > 0) return showOffer(app, { name, offered });
  await prepareShown(at, name, refresh);
  const servers = app.servers.states()
    .filter((state) => name === undefined || state.name === name)
    .map((state) => ({ ...state, tools: app.catalog.toolsOf(state.name).map(listedBy(app)) }));
  const texts = servers.map((server) =>
    listText(`${server.name} (${server.origin}, ${server.kind}) ${stateSaid(server)}`, server.tools)
  );
  return {
    value: { servers },
    text: texts.join("\n\n"),
    paint: paintVerdicts,
    note: slow(servers),
  };
}

/** Loads the tools of one server or of all, for a user who looks at them. */
async function prepareShown(
  at: CommandContext,
  server: string | undefined,
  isWhole = false,
): Promise<void> {
  await prepare(at, server, { isWhole }).catch((cause) => {
    const error = asPmlError(cause);
    throw error.code === "UPSTREAM_DOWN" && server !== undefined
      ? withAction(error, server)
      : cause;
  });
}

/** Returns the error of a server that does not start, with the actions of the user. */
function withAction({ code, message, hint, detail, cause }: PmlError, name: string): PmlError {
  const actions = `See \`pml logs ${name}\`; correct its definition, or \`pml remove ${name}\``;
  const own = hint?.startsWith("Nothing was") === true ? [actions] : [hint, actions];
  return new PmlError(code, message, {
    hint: own.filter(Boolean).join(". "),
    cause,
    ...defined({ detail }),
  });
}

function listText(head: string, tools: readonly Parameters<typeof lineOf>[0][]): string {
  return [head, ...tools.map((tool) => `  ${lineOf(tool)}`)].join("\n");
}

/** Returns the state of a server, with the reason where there is one. */
export function stateSaid(
  { state, why }: { readonly state: string; readonly why?: string },
): string {
  return why === undefined ? state : `${state}: ${inset(why, 400)}`;
}

/** Names the servers that did not answer in time. */
function slow(servers: readonly { readonly name: string; readonly state: string }[]): string {
  const names = servers.filter(({ state }) => state === "unknown").map(({ name }) => name);
  if (names.length === 0) return "";
  return `Not ready yet: ${names.join(", ")}. \`pml tools --refresh\` installs and waits for all`;
}

/** Names the servers whose tools are missing because they failed. */
function failures(troubles: readonly { readonly name: string; readonly state: string }[]): string {
  const names = troubles.filter(({ state }) => state === "failed").map(({ name }) => name);
  return names.length === 0 ? "" : `Failed: ${names.join(", ")}. \`pml doctor\` shows why`;
}

/** Finds tools for a task. */
export async function search(
  at: CommandContext,
  { words, server, limit = "10" }: Typed,
): Promise<Shown> {
  const query = words.join(" ").trim();
  if (query === "") {
    throw usage("Cannot search: the query is empty", "Write it like `pml search read a file`");
  }
  const most = limitOf(limit, 100);
  const { app } = at;
  await prepare(at, server);
  const { mode, hits, isLoose, notes } = await (await app.finder()).search(query, {
    server,
    limit: most,
    allowed: (id) => app.policy.now.judge(id).kind !== "deny",
  });
  // With a server, PML asks no other one for its tools, so their states do not matter.
  const isSearched = ({ name }: { readonly name: string }) => [undefined, name].includes(server);
  const lacking = mode === "hybrid" ? undefined : await (await app.finder()).lacking();
  const items = hits.map((hit) => ({
    ...listedBy(app)(hit),
    origin: hit.server.origin,
    approved: hit.server.asksFirst !== true,
    score: hit.score,
    covered: hit.covered,
  }));
  return {
    value: { mode, loose: isLoose, notes, hits: items },
    text: items.map((one) =>
      lineOf(one, `[${originSaid(one)}, ${Math.round(one.covered * 100)}%] `)
    ).join("\n"),
    paint: paintVerdicts,
    note: [
      items.length === 0 ? "Nothing matches; try other words, or `pml tools`" : isLoose && LOOSE,
      ...notes.map(noteText),
      slow(app.servers.states().filter(isSearched)),
      failures(app.servers.troubles().filter(isSearched)),
      ...(lacking === undefined ? [] : [`Search works ${lacking}`]),
    ].filter(Boolean).join("\n"),
  };
}

/**
 * Shows whether the rules allow a tool or a call, and which rule decides. Fails for an unknown
 * tool, for which it also shows the decision.
 */
export async function why(
  at: CommandContext,
  { words: [name = "", ...pairs] }: Typed,
): Promise<Shown> {
  const { app } = at;
  const id = ruleNameOf(name) ?? parseId(name, app.servers);
  const { server, tool: own } = splitToolId(id);
  await askForTools(at, { only: server });
  const tool = app.catalog.get(id)?.tool;
  const args = await argumentsOf(app, { id, pairs, tool });
  const forbidden = app.policy.forbidden(server);
  const { kind, rule, source, depends } = forbidden === undefined
    ? app.policy.now.judge(id, args)
    : { kind: "deny", rule: forbidden.error.message, source: forbidden.path } as const;
  const isEnded = kind === "allow" && rule === id && tool !== undefined &&
    new MultiToolRules(app.policy.home).hasEnded({ rule, source }, tool);
  const verdict = SAYS[isEnded ? "ask" : kind];
  const uncovered = kind === "ask" ? uncoveredRule(app, id) : undefined;
  const state = app.servers.states().find(({ name }) => name === server);
  const approved = await approvedOf(app, id);
  const tokens = tool && tokensOf(JSON.stringify(tool));
  const readers = own === READS_RULE_NAME ? readersOf(app, server) : undefined;
  const reading = tool && await readingAt(app, { id, tool });
  const note = forbidden || tool || own.startsWith("@")
    ? ""
    : await missingText(app, { server, own, state });
  const isUnknown = note !== "" && state === undefined && source === "defaults";
  return {
    code: note ? 1 : 0,
    value: {
      ...{ tool: id, verdict, rule, source, depends, ...defined({ uncovered }) },
      ...{ state: state?.state, approved, tokens },
      ...defined({ reading, covers: readers }),
    },
    text: isUnknown ? "" : [
      `${id}: ${verdict}`,
      ...([undefined, id].includes(parseToolId(name))
        ? []
        : [`in rules, ${quoted(name, 200)} has this name`]),
      forbidden === undefined ? `by ${ruleSaid({ rule, source })}` : rule,
      ...(uncovered === undefined ? [] : [uncoveredText(uncovered)]),
      ...addressLines(own, { server, kind }),
      ...(isEnded ? [ENDED] : []),
      ...(readers === undefined ? uncoveredLines(app, id) : [readersText(server, readers)]),
      ...(depends ?? []).map((one) => `its arguments decide, by the rule ${quoted(one, Infinity)}`),
      ...(state === undefined ? [] : [`the server: ${stateSaid(state)}`]),
      ...Object.entries(approved).map(([what, value]) =>
        `approved ${what}: ${visible(value, 400)}`
      ),
      ...(tokens === undefined ? [] : [tokensLine(tokens)]),
      ...(reading === undefined ? [] : [readingText(reading)]),
    ].join("\n  "),
    note,
  };
}

/** Returns a line for the addresses of a server that the rules for its resources do not cover. */
function addressLines(
  part: string,
  { server, kind }: { readonly server: string; readonly kind: Verdict["kind"] },
): readonly string[] {
  return ["@resources", "@skills"].includes(part) && kind !== "deny"
    ? [`an address that ${quoted(server)} neither lists nor links asks each time`]
    : [];
}

/** An allow rule of the user's file that names the server of a tool and does not cover it. */
interface UncoveredRule {
  readonly rule: string;
  readonly source: string;
  readonly reason: string;
}

/** Returns the narrowest allow rule of the user's file that names a tool and does not cover it. */
function uncoveredRule(app: App, id: ToolId): UncoveredRule | undefined {
  const { users, config: { rules } } = app.policy.now;
  const reason = users.whyUncovered(id);
  const { path } = app.loaded().person;
  const [line] = rules.allow.filter(({ pattern, source }) =>
    source === path && pattern.kind !== "any" && matches(pattern, id)
  ).sort((one, other) => narrowness(other.pattern) - narrowness(one.pattern));
  if (reason === undefined || line === undefined) return undefined;
  return { rule: line.pattern.text, source: line.source, reason };
}

function uncoveredText({ rule, source, reason }: UncoveredRule): string {
  return `the rule ${quoted(rule, Infinity)} in ${source} does not cover this server: ${reason}`;
}

/** Returns whether a tool only reads: of a module by its permissions, else by its definition. */
async function readingAt(
  app: App,
  { id, tool }: { readonly id: ToolId; readonly tool: ToolDefinition },
): Promise<ToolReading> {
  const { server, tool: name } = splitToolId(id);
  const isDerived = await app.directory.at(server).onlyReads(name).catch(() => undefined);
  if (isDerived === undefined) return readingOf(tool);
  return { reads: app.policy.isReader(id), note: "by its permissions" };
}

/** Returns the text whether a tool only reads. */
function readingText({ reads, note }: ToolReading): string {
  const why = note === undefined ? "" : ` (${note})`;
  return `${reads ? "only reads" : "may do more than read"}${why}`;
}

/** Returns the arguments that were typed, with those that the user fixed; undefined if there are none. */
async function argumentsOf(
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
  const entry = app.directory.at(splitToolId(id).server);
  const call = { id, arguments: typed };
  const { arguments: fullArguments } = entry.blocked() === undefined
    ? await app.servers.withSettings(call, entry)
    : call;
  return pairs.length > 0 ? fullArguments : undefined;
}

/** Returns the text that a server is unknown, or that it lists no such tool. */
async function missingText(
  app: App,
  { server, own, state }: {
    readonly server: string;
    readonly own: string;
    readonly state: { readonly state: string } | undefined;
  },
): Promise<string> {
  if (state === undefined) {
    // The owner of the name is known after the registries were asked.
    await (await app.finder()).offered(server);
    if (nameOwner(app, server)) return "";
    const names = app.servers.states().map(({ name }) => name);
    return suggestionFor(server, {
      known: names,
      before: `There is no server ${quoted(server)} here`,
    });
  }
  const toolNames = app.catalog.toolsOf(server).map(({ tool: { name } }) => name);
  const before = `${quoted(server)} lists no tool ${quoted(own)}`;
  return state.state === "ready" ? suggestionFor(own, { known: toolNames, before }) : "";
}

/** Returns the approvals of a server and a tool, or the pins of their first use. */
async function approvedOf(app: App, id: ToolId): Promise<Readonly<Record<string, string>>> {
  const { server, tool } = splitToolId(id);
  const pins = await app.pins();
  await pins.state();
  const { version, integrity, tools = {} } = pins.pinOf(server) ?? {};
  const code = integrity ?? app.policy.approvedCode(server);
  return defined({ version, code, tool: memberOf(tools, tool) });
}

/** Reads a name for another part of MCP, such as `github:@resources`. */
function ruleNameOf(name: string): ToolId | undefined {
  const names = [...PART_RULE_NAMES, READS_RULE_NAME];
  const ruleName = names.find((one) => name.endsWith(`:${one}`));
  const server = name.slice(0, -1 - (ruleName?.length ?? 0));
  return ruleName !== undefined && isServerName(server) ? toolId(server, ruleName) : undefined;
}

/**
 * Returns the text for a rule. A rule that the user wrote contains a pattern; the default rules
 * are described in words.
 */
function ruleSaid({ rule, source }: Pick<Verdict, "rule" | "source">): string {
  return /[:*]/.test(rule) ? `${quoted(rule, Infinity)} in ${source}` : `default: ${rule}`;
}

/** Shows the tools that a registry lists for a server that was never used here. */
function showOffer(
  app: App,
  { name, offered }: { readonly name: string; readonly offered: Offered },
): Shown {
  const tools = offered.map(listedBy(app));
  const head = `${name} (registry) never used here: the first call asks you`;
  const state = { name, origin: "registry", state: "offered", tools };
  return { value: { servers: [state] }, text: listText(head, tools) };
}

async function showTool(
  at: CommandContext,
  { id, offered }: { readonly id: ToolId; readonly offered: Offered },
): Promise<Shown> {
  const { app } = at;
  const offer = offered.find((one) => one.id === id);
  if (offer !== undefined) {
    const { name: _, ...definition } = offer.tool;
    const facts = { id, verdict: "asks", permissions: [] };
    const rule = "the first use of a server, which always asks";
    return {
      value: { id, verdict: "asks", origin: "registry", ...definition },
      text: await toolPage(app, offer.tool, { ...facts, rule }),
    };
  }
  await prepareShown(at, splitToolId(id).server);
  const definition = await app.servers.shownDefinition(id);
  const { kind, rule, source } = app.policy.now.judge(id);
  const { server, tool } = splitToolId(id);
  const permissions = await app.directory.at(server).permissionLines(tool);
  const ownId = toolId(server, definition.name);
  const rules = ownId === id ? {} : { rules_name: id };
  const own = { id: ownId, ...rules, verdict: SAYS[kind], rule, source, permissions };
  const facts = { ...own, rule: ruleSaid(own) };
  return {
    // PML's own values come first, and a server cannot override them with fields of the same name.
    value: { ...own, ...definition, ...own },
    text: await toolPage(app, definition, facts),
  };
}

function originSaid(
  { origin, approved }: { readonly origin: string; readonly approved: boolean },
): string {
  return approved ? origin : `${origin}, never used here`;
}

/** A tool that is listed or found. */
interface ListedTool {
  readonly id: ToolId;
  readonly tool: ToolDefinition;
  readonly server: { readonly name: string; readonly asksFirst?: boolean };
}

function listedBy(app: App) {
  return ({ id: own, ...hit }: ListedTool) => {
    const { tool: { description = "" }, server } = hit;
    const id = shownId(hit);
    const { kind } = app.policy.now.judge(own);
    // The first use of a server always asks, even if the rules allow the tool.
    const verdict = SAYS[server.asksFirst && kind === "allow" ? "ask" : kind];
    return { id, description, verdict };
  };
}

/**
 * Returns one line for a tool. PML's own words stand before the server's description, which may
 * claim anything.
 */
function lineOf(
  { id, description, verdict }: ReturnType<ReturnType<typeof listedBy>>,
  origin = "",
): string {
  const [first = ""] = description.split("\n");
  return `${id.padEnd(40)} ${verdict.padEnd(6)} ${origin}${visible(first, 100)}`;
}

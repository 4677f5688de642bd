/**
 * The table of a new server: the effect of each tool, by its definition, and the decision that PML
 * proposes for it: `allow` for tools that only read, `ask` for all others.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { pageFacts } from "../calls/page_tools.ts";
import { counted } from "../core/amounts.ts";
import { skeletonOf } from "../core/confusable.ts";
import { indentLines, objectOf, quoted, visible, withoutUndefined } from "../core/json.ts";
import { splitToolId, type ToolId, toolId } from "../core/tool_id.ts";
import { definitionLines, isMark } from "../policy/definition_texts.ts";
import { definitionHash } from "../policy/integrity.ts";
import { readingOf } from "../policy/tool_reading.ts";
import type { RuleList } from "../policy/rule_lists.ts";
import { escapeInvisible } from "../policy/trust_subject.ts";
import type { ListName } from "../protocol/lists.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import type { CatalogTool } from "../search/catalog.ts";
import { findKind } from "../servers/kinds.ts";

/** A tool, or a part of a server such as its resources, with the proposed rule. */
export interface TableRow {
  readonly id: ToolId;
  /** `reads`, `writes`, `destroys` or `unclear`; of a part, the number of its items. */
  readonly effect: string;
  /** Why PML does not propose `allow`, or a remark on a tool for which it does. */
  readonly note?: string;
  /** The first line of the description of its server. */
  readonly description: string;
  /** The decision of the present rules. */
  readonly present: RuleList;
  readonly proposed: RuleList;
  /** Whether the row runs without a rule, because the approval of its server covers it. */
  readonly needsNoRule?: boolean;
  /** The hash of the definition that the user's answer is about; of a part, its name. */
  readonly hash: string;
  /** Whether its texts are unusual, so that it may run only after they were shown. */
  readonly isMarked: boolean;
  /** The texts of its definition that reach models. */
  readonly texts: readonly string[];
}

/** A server that has no rows, and why its tools ask at their first use. */
export interface UnlistedServer {
  readonly name: string;
  readonly reason: string;
}

/** The table of one or more servers. */
export interface ServerTable {
  readonly rows: readonly TableRow[];
  readonly unlisted: readonly UnlistedServer[];
  /** Facts about the pages of the servers. */
  readonly facts: readonly string[];
}

/** The effect of a tool, and why PML does not propose `allow`. */
type Effect = Pick<TableRow, "effect" | "note"> & { readonly reads: boolean };

/** The parts of a server besides tools, with the lists that they consist of. */
const PARTS: readonly (readonly [part: string, lists: readonly ListName[]])[] = [
  ["@resources", ["resources", "resourceTemplates"]],
  ["@prompts", ["prompts"]],
  ["@skills", ["skills"]],
];
/** A tool whose name begins with such a word does more than read, whatever its server says about it. */
const WRITING_WORDS = new Set(
  ("add append apply approve archive assign book buy call clear click commit convert copy create " +
    "deploy draft drag edit enable exec execute fill fork import insert install invite kick launch " +
    "lock merge modify move navigate open pay post press publish push put register rename reply " +
    "restart restore run save schedule send set share sign start stop store submit swap sync tag " +
    "transfer trigger type unlock update upgrade upload upsert write").split(" "),
);
/** A tool whose name begins with such a word may destroy something, whatever its server says. */
const DESTROYING_WORDS = new Set(
  ("abort ban cancel close delete destroy disable discard drop erase flush kill purge remove reset " +
    "revert revoke rm shutdown terminate truncate uninstall unpublish wipe").split(" "),
);

/** Returns the table of servers whose tools PML has listed. Starts no server. */
export async function readTable(app: App, servers: readonly string[]): Promise<ServerTable> {
  const states = new Map(app.servers.states().map((state) => [state.name, state]));
  const rows: TableRow[] = [];
  const unlisted: UnlistedServer[] = [];
  const facts: string[] = [];
  for (const name of servers) {
    const { state, why } = states.get(name) ?? { state: "unknown", why: undefined };
    if (state !== "ready") {
      unlisted.push({ name, reason: why ?? "it did not list its tools in time" });
      continue;
    }
    const tools = app.catalog.toolsOf(name).flatMap(({ id }) => app.catalog.get(id) ?? []);
    rows.push(...await toolRows(app, tools), ...await partRows(app, name));
    const { servers, policy: { now: { judge } } } = app;
    facts.push(...pageFacts(name, { servers, judge }).map(escapeInvisible));
  }
  return { rows, unlisted, facts };
}

/** Returns whether two tables show the same definitions and decisions. */
export function isSameTable(one: ServerTable, other: ServerTable): boolean {
  const keyOf = ({ rows }: ServerTable) =>
    JSON.stringify(rows.map(({ id, hash, present, proposed }) => [id, hash, present, proposed]));
  return keyOf(one) === keyOf(other);
}

/** Returns the lines of a table. `chosen` are the present choices of the user. */
export function tableLines(
  { rows, unlisted, facts }: ServerTable,
  chosen: ReadonlyMap<ToolId, RuleList> = new Map(),
): readonly string[] {
  const width = Math.max(...rows.map(({ id }) => visible(splitToolId(id).tool, 60).length), 0);
  const digits = `${rows.length}`.length;
  const lines: string[] = [];
  let server: string | undefined;
  for (const [index, row] of rows.entries()) {
    const nameParts = splitToolId(row.id);
    if (nameParts.server !== server) {
      server = nameParts.server;
      lines.push(`${server}:`);
    }
    const decision = chosen.get(row.id) ?? row.proposed;
    // The number of rules in the question is the number of lines with a new decision.
    const list = row.needsNoRule === true && decision === row.present ? "-" : decision;
    const effect = [row.effect, row.note].filter(Boolean).join(": ");
    const name = visible(nameParts.tool, 60).padEnd(width);
    lines.push(
      `  ${`${index + 1}`.padStart(digits)}  ${list.padEnd(5)}  ${name}  ${effect}`,
      ...(row.description === "" ? [] : [`${" ".repeat(digits + 11)}| ${row.description}`]),
    );
  }
  return [
    ...lines,
    ...unlisted.map(({ name, reason }) =>
      `${name}: its tools are not in the table: ${indentLines(reason, 400)}`
    ),
    ...facts,
  ];
}

/** Returns a table as JSON. */
export function tableValue({ rows, unlisted }: ServerTable) {
  return {
    tools: rows.map(({ id, effect, note, present, proposed, isMarked, hash }) => ({
      id,
      effect,
      ...withoutUndefined({ note }),
      present,
      proposed,
      unusual: isMarked,
      hash,
    })),
    unlisted,
  };
}

async function toolRows(app: App, tools: readonly CatalogTool[]): Promise<readonly TableRow[]> {
  const bySkeleton = Map.groupBy(tools, ({ own }) => skeletonOf(own.name.toLowerCase()));
  return await Promise.all(tools.map(async ({ id, own, isChanged = false }) => {
    const texts = definitionLines(own);
    const isMarked = texts.some(isMark);
    const lookalike = bySkeleton.get(skeletonOf(own.name.toLowerCase()))?.find((each) =>
      each.own !== own
    );
    const { effect, note, reads } = await findEffect(app, { id, own });
    const { kind: present, rule, source } = app.policy.now.judge(id);
    const reason = isChanged
      ? "changed, not approved"
      : isMarked
      ? "its texts are unusual, so it asks"
      : lookalike !== undefined
      ? `its name looks like ${quoted(lookalike.own.name, 60)}`
      : undefined;
    // If a rule of the user decides already, the table proposes the same.
    const hasRule = source !== "defaults";
    const ruleNote = hasRule
      ? `by the rule ${visible(rule, 100)}`
      : present === "allow"
      ? `by the default rule ${visible(rule, 100)}`
      : undefined;
    const proposed = hasRule ? present : reads && reason === undefined ? "allow" : "ask";
    const hash = definitionHash(own);
    const notes = [note, reason, ruleNote].filter((one) => one !== undefined).join("; ");
    return {
      ...{ id, effect, present, proposed, hash, isMarked, texts },
      ...(notes !== "" && { note: notes }),
      description: firstLine(own),
    };
  }));
}

/** Returns the effect of a tool. Its name and arguments can only make the server's hints stricter. */
export async function findEffect(
  app: App,
  { id, own }: Pick<CatalogTool, "id" | "own">,
): Promise<Effect> {
  const { server, tool } = splitToolId(id);
  const source = app.directory.get(server);
  const { run = [] } = app.config().grants[server] ?? {};
  const word = /^[a-z]+/.exec(own.name.replace(/([a-z\d])([A-Z])/g, "$1_$2").toLowerCase())?.[0];
  const isDestructive = objectOf(own.annotations).destructiveHint === true;
  if (isDestructive) return { effect: "destroys", note: "its server says so", reads: false };
  if (word !== undefined && DESTROYING_WORDS.has(word)) {
    return { effect: "destroys", note: `its name begins with ${word}`, reads: false };
  }
  if (run.length > 0) {
    return { effect: "writes", note: "its server may run programs", reads: false };
  }
  if (findKind(source.kind)?.isSandboxed === true) {
    const reads = await source.onlyReads(tool).catch(() => false) === true;
    if (reads) return { effect: "reads", note: "its permissions allow nothing else", reads };
    // A built-in tool that runs a program may only read, by PML's own definition.
    return app.policy.isReader(id)
      ? { effect: "reads", note: "by PML's own definition", reads: true }
      : { effect: "writes", note: "its permissions allow more than reading", reads };
  }
  const { reads, note } = readingOf(own);
  if (reads && word !== undefined && WRITING_WORDS.has(word)) {
    return { effect: "unclear", note: `its name begins with ${word}`, reads: false };
  }
  const claimsReadOnly = objectOf(own.annotations).readOnlyHint === true;
  return {
    effect: reads ? "reads" : claimsReadOnly ? "unclear" : "writes",
    ...withoutUndefined({ note }),
    reads,
  };
}

async function partRows(app: App, server: string): Promise<readonly TableRow[]> {
  const source = app.directory.get(server);
  const rows = await Promise.all(PARTS.map(async ([part, lists]) => {
    const counts = await Promise.all(
      lists.map((list) => source.list(list).then((items) => items.length, () => 0)),
    );
    const count = counts.reduce((sum, one) => sum + one, 0);
    if (count === 0) return [];
    const id = toolId(server, part);
    const { kind: present, rule, source: origin } = app.policy.now.judge(id);
    const needsNoRule = present === "allow" && origin === "defaults";
    return [{
      id,
      effect: counted(count, part.slice(1, -1)),
      note: needsNoRule
        ? "allowed with their server, without a rule"
        : present === "allow"
        ? `by the rule ${visible(rule, 100)}`
        : "asks",
      needsNoRule,
      description: "",
      ...{ present, proposed: present, hash: part, isMarked: false, texts: [] },
    }];
  }));
  return rows.flat();
}

function firstLine({ description = "" }: ToolDefinition): string {
  return escapeInvisible(visible(description.split("\n")[0] ?? "", 80));
}

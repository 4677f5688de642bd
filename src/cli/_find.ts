/**
 * `pml tools`, `pml search` and `pml why`: what there is, and what the rules say of it.
 *
 * @module
 */

import type { App } from "../app.ts";
import type { Verdict } from "../core/call.ts";
import { asPmlError } from "../core/errors.ts";
import { quoted, visible } from "../core/json.ts";
import { splitToolId, type ToolId } from "../core/tool_id.ts";
import type { ToolDefinition } from "../core/tool.ts";
import { parseId } from "./_arguments.ts";
import { usage } from "./_failure.ts";
import { prepare, visit } from "./_house.ts";
import { print, printJson, tell } from "./out.ts";

type ServerState = ReturnType<App["servers"]["states"]>[number];

const SAYS = { allow: "runs", ask: "asks", deny: "denied" } as const;
const LINE_MAX = 100;

interface Json {
  readonly json?: boolean;
}

/** Lists servers and their tools, or shows one tool whole. */
export async function tools(name: string | undefined, { json = false }: Json): Promise<number> {
  if (name?.includes(":")) return await showTool(parseId(name), json);
  return await visit(async ({ app }) => {
    await prepare(app, name);
    const shelves = app.servers.states().filter((state) =>
      name === undefined || state.name === name
    )
      .map((state) => ({ state, tools: toolsOf(app, state.name) }));
    if (json) printJson({ servers: shelves.map(({ state, tools }) => ({ ...state, tools })) });
    else print(shelves.map(({ state, tools }) => shelfText(state, tools)).join("\n\n"));
    return 0;
  });
}

/** Finds tools by what they do. */
export async function search(
  words: readonly string[],
  options: Json & { readonly server?: string; readonly limit?: string },
): Promise<number> {
  const query = words.join(" ").trim();
  if (query === "") {
    throw usage("Cannot search: the query is empty", 'Write it like `pml search "read a file"`');
  }
  const limit = limitOf(options.limit);
  return await visit(async ({ app }) => {
    await prepare(app, options.server);
    const found = await app.search(query, {
      ...(options.server === undefined ? {} : { server: options.server }),
      limit,
      allowed: (id) => app.judge(id).kind !== "deny",
    });
    const hits = found.hits.map(({ id, score, tool }) => ({ ...listed(app, id, tool), score }));
    if (options.json) printJson({ mode: found.mode, hits });
    else if (hits.length > 0) print(hits.map(lineOf).join("\n"));
    else tell("Nothing fits; try other words, or see all with `pml tools`");
    return 0;
  });
}

/** Says what the rules say of a tool, and which rule says it. */
export async function why(name: string, { json = false }: Json): Promise<number> {
  const id = parseId(name);
  return await visit(async ({ app }) => {
    const { kind, rule, source } = app.judge(id);
    const verdict = SAYS[kind];
    const notes = kind === "deny" ? [] : await notesOn(app, id);
    if (json) printJson({ tool: id, verdict, rule, source, notes });
    else {print(
        [`${id}: ${verdict}`, `  by ${quoted(rule)} in ${source}`, ...notes.map(note)].join("\n"),
      );}
    return 0;
  });
}

async function showTool(id: ToolId, json: boolean): Promise<number> {
  return await visit(async ({ app }) => {
    await prepare(app, splitToolId(id).server);
    const definition = await app.servers.definition(id);
    const { kind, rule, source } = app.judge(id);
    if (json) printJson({ ...definition, id, verdict: SAYS[kind], rule, source });
    else {
      const schema = JSON.stringify(definition.inputSchema, null, 2);
      print(`${id}: ${SAYS[kind]}\n${definition.description ?? ""}\n\nArguments:\n${schema}`);
    }
    return 0;
  });
}

async function notesOn(app: App, id: ToolId): Promise<readonly string[]> {
  const { server } = splitToolId(id);
  const open = await app.policy.unapproved(server);
  if (open !== undefined) return ["its server was not approved yet, so the first call asks"];
  try {
    await app.servers.definition(id);
    return [];
  } catch (error) {
    // The rules speak of tools that are not there, too.
    return [asPmlError(error).message];
  }
}

function note(text: string): string {
  return `  note: ${text}`;
}

function toolsOf(app: App, server: string): readonly Listed[] {
  return app.catalog.toolsOf(server).map(({ id, tool }) => listed(app, id, tool));
}

interface Listed {
  readonly id: ToolId;
  readonly description: string;
  readonly verdict: typeof SAYS[Verdict["kind"]];
}

function listed(app: App, id: ToolId, { description = "" }: ToolDefinition): Listed {
  return { id, description, verdict: SAYS[app.judge(id).kind] };
}

function shelfText(state: ServerState, tools: readonly Listed[]): string {
  const { name, kind, origin, state: how, why } = state;
  const reason = why === undefined ? "" : `: ${visible(why, 400)}`;
  const head = `${name} (${origin}, ${kind}) ${how}${reason}`;
  return [head, ...tools.map((tool) => `  ${lineOf(tool)}`)].join("\n");
}

function lineOf({ id, description, verdict }: Listed): string {
  const first = description.split("\n", 1)[0] ?? "";
  return `${id.padEnd(40)} ${verdict.padEnd(6)} ${visible(shortened(first), Infinity)}`;
}

function shortened(text: string): string {
  return text.length > LINE_MAX ? `${text.slice(0, LINE_MAX)}…` : text;
}

function limitOf(text: string | undefined): number {
  const limit = Number(text ?? 10);
  if (Number.isInteger(limit) && limit >= 1 && limit <= 100) return limit;
  throw usage(
    `Cannot search: --limit is ${quoted(text ?? "")}`,
    "Give a whole number from 1 to 100",
  );
}

/**
 * The tools, rules, costs and settings of a workspace, as the page shows them.
 *
 * @module
 */

import type {
  ContextCosts,
  RuleRow,
  SearchAnswer,
  Settings,
  ToolPage,
  ToolRow,
} from "../control/api.ts";
import type { App } from "../app/app.ts";
import { wantedKeys } from "../config/wanted_keys.ts";
import { Cancellation } from "../core/cancellation.ts";
import { textOf } from "../core/json.ts";
import { tokensOf } from "../core/tokens.ts";
import { splitToolId, type ToolId } from "../core/tool_id.ts";
import { sessionAnswersIn } from "../policy/session_files.ts";
import { NO_CLIENT } from "../protocol/call.ts";
import { signatureOf } from "../search/signature.ts";
import type { FoundClient } from "../page/actions.ts";
import { parseId } from "./_arguments.ts";
import { type CallEffect, listedEffects } from "./_call_effect.ts";
import { readClientStates } from "./_client_setup.ts";
import type { CommandContext } from "./_command_context.ts";
import { fitText, measureFit } from "./_config_costs.ts";
import { readSettingValues } from "./_config_values.ts";
import { Costs } from "./costs.ts";
import { search, why } from "./_find.ts";
import { lastUses, ruleGroups, useKey } from "./_rule_list.ts";
import { gatewayFrom } from "../config/gateway_options.ts";
import { presets } from "../config/presets.ts";

/** Returns the answer of `search` as the model gets it, and the tools that it finds. */
export async function pageSearch(context: CommandContext, query: string): Promise<SearchAnswer> {
  const { app } = context;
  const scope = { cancellation: new Cancellation(), client: NO_CLIENT, answer: undefined };
  const calls = await (await app.gateway()).metaCalls();
  const outcome = await calls.call("search", { arguments: { query }, scope });
  const texts = outcome.kind === "result"
    ? outcome.result.content.map((one) => textOf(one.text))
    : [];
  const text = texts.join("\n");
  const { value } = await search(context, { words: [query] });
  const { hits } = value as { readonly hits: readonly FoundTool[] };
  return {
    text,
    tokens: tokensOf(text),
    hits: hits.map(({ id, description, verdict }) => ({
      id,
      description,
      rule: shownRule(app, id, verdict),
    })),
  };
}

/** Requests the tools of a server, or of all servers, and returns them. */
export async function pageTools(
  { app }: CommandContext,
  server: string | undefined,
): Promise<readonly ToolRow[]> {
  await app.servers.lists.prepare("tools", server === undefined ? {} : { only: server });
  const entries = server === undefined ? app.catalog.list() : app.catalog.toolsOf(server);
  const effectFor = listedEffects(app);
  return entries.map((entry) => ({
    id: entry.id,
    description: entry.tool.description ?? "",
    rule: shownRule(app, entry.id, effectFor(entry).effect),
  }));
}

/** A tool that a search found. */
interface FoundTool {
  readonly id: ToolId;
  readonly description: string;
  readonly verdict: CallEffect;
}

/** Returns the decision of the rules; "ask" if a call asks although a rule allows the tool. */
function shownRule(app: App, id: ToolId, effect: CallEffect): ToolRow["rule"] {
  return effect === "asks" ? "ask" : app.policy.now.judge(id).kind;
}

/** Returns a tool with its schema, its rule and its pin. */
export async function pageTool(context: CommandContext, name: string): Promise<ToolPage> {
  const { app } = context;
  const id = parseId(name, app.servers);
  const { server, tool: toolName } = splitToolId(id);
  await app.servers.lists.prepare("tools", { only: server });
  const definition = await app.servers.shownDefinition(id);
  const { description = "", inputSchema, outputSchema, annotations } = definition;
  const { text = "", note = "" } = await why(context, { words: [name] });
  const state = app.servers.states().find((one) => one.name === server);
  const isChanged = state?.changed?.includes(toolName) === true;
  const difference = isChanged ? await readChanges(app, id) : "";
  return {
    id,
    description,
    rule: shownRule(app, id, listedEffects(app)({ id, tool: definition }).effect),
    signature: signatureOf(definition),
    inputSchema,
    ...outputSchema !== undefined && { outputSchema },
    ...annotations !== undefined && { annotations },
    why: [text, note].filter(Boolean).join("\n"),
    pin: isChanged ? "changed since it was approved" : "as it was approved, or not used yet",
    ...difference !== "" && { difference },
  };
}

/** Returns the lines that a question about a changed tool shows. */
async function readChanges(app: App, id: ToolId): Promise<string> {
  const definition = app.catalog.get(id)?.own;
  const identity = await app.directory.get(splitToolId(id).server).identity();
  if (definition === undefined || identity === undefined) return "";
  const unapproved = await (await app.pins()).findUnapprovedTool(identity, definition);
  return (unapproved?.facts ?? []).join("\n");
}

/** Requests the tools of servers, and returns the tokens of lists for each mode and each server. */
export async function pageContext({ app }: CommandContext): Promise<ContextCosts> {
  await app.servers.lists.prepare();
  const costs = new Costs(app);
  const { gateway } = app.config();
  const modes = [{ mode: "now", tokens: (await costs.list(gateway)).tokens }];
  for (const { name, overrides } of await presets()) {
    const { tokens } = await costs.list(gatewayFrom(gateway, overrides));
    modes.push({ mode: name, tokens });
  }
  const fit = await measureFit(app, costs);
  const [, command] = /`(pml config --preset [^`]+)`/.exec(fitText(fit, gateway.exposure)) ?? [];
  const visibleTools = app.catalog.list().filter(({ id }) =>
    app.policy.now.judge(id).kind !== "deny"
  );
  const servers = [...Map.groupBy(visibleTools, ({ server }) => server.name)].map((
    [name, tools],
  ) => ({
    name,
    tools: tools.length,
    tokens: tokensOf(JSON.stringify(tools.map(({ tool }) => tool))),
  }));
  return {
    mode: gateway.exposure,
    modes,
    servers: servers.sort((one, other) => other.tokens - one.tokens),
    ...command !== undefined && { command },
  };
}

/** Returns the rules of a workspace with their last uses, and the answers for sessions. */
export async function pageRules({ app }: CommandContext): Promise<readonly RuleRow[]> {
  const { home, workspace } = app.config();
  const used = await lastUses(home);
  const rows = ruleGroups(app).flatMap(({ title, rows }) =>
    rows.map((row): RuleRow => {
      const lastUsed = used.get(useKey(row.source, row.rule));
      return {
        rule: row.rule,
        effect: row.list,
        from: [title, row.note].filter(Boolean).join("; "),
        ...lastUsed !== undefined && { lastUsed: Date.parse(lastUsed) },
        canRemove: row.reach === "user" || row.reach === "workspace",
      };
    })
  );
  const sessions = (await sessionAnswersIn(home, app.log))
    .filter((answer) => answer.workspace === workspace);
  return [
    ...rows,
    ...sessions.map(({ rule, client, at }): RuleRow => ({
      rule,
      effect: "session",
      from: client,
      lastUsed: at,
      canRemove: true,
    })),
  ];
}

/** Returns the settings, the identities, and the names of keys without their values. */
export async function pageSettings({ app }: CommandContext): Promise<Settings> {
  const { redactor } = app.parts;
  await app.keys.waitForOutside();
  const names = new Set([
    ...wantedKeys(app.config(), app.registryKeys()).map(({ name }) => name),
    ...app.keys.storedValues().keys(),
  ]);
  return {
    settings: readSettingValues(app).map(({ key, value, from }) => ({
      key,
      value: redactor.redact(typeof value === "string" ? value : JSON.stringify(value) ?? ""),
      from,
    })),
    keys: [...names].sort().map((name) => ({ name, isSet: app.keys.find(name) !== undefined })),
    identities: [...app.loaded().access?.identities.keys() ?? []],
  };
}

/** Returns the clients whose servers can be imported. */
export async function pageClients({ app }: CommandContext): Promise<readonly FoundClient[]> {
  return (await readClientStates(app)).map(({ client, others, imported }) => ({
    client,
    title: client,
    servers: others.filter((name) => !imported.includes(name)).length,
  })).filter(({ servers }) => servers > 0);
}

/**
 * `pml config --wizard`: asks two questions, measures the user's servers, recommends a preset and
 * writes it.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { type ClientName, CLIENTS } from "../config/clients.ts";
import { type Preset, presets } from "../config/presets.ts";
import { counted } from "../core/amounts.ts";
import { PmlError } from "../core/errors.ts";
import { type AllCosts, BREAK_EVEN, costsText, formatNumber, measure } from "./_config_costs.ts";
import { agreed } from "./_config_file.ts";
import { presetPlan } from "./_config_preset.ts";
import { usage } from "./_failure.ts";
import { stateSaid } from "./_find.ts";
import { askForTools, type CommandContext, type Shown, type Typed } from "./_command_context.ts";
import { askWord, needPerson } from "./_terminal.ts";
import { tell } from "./out.ts";

/** The user's answers. */
export interface WizardAnswers {
  readonly client: ClientName | "other";
  /** How many servers the user plans to add to those that were measured. */
  readonly planned: number;
  readonly intent: string | undefined;
}

/**
 * The number of tools that each client was reported to accept. It differs between versions, so the
 * text says "reported".
 */
const TOOLS_MAX: Partial<Record<WizardAnswers["client"], number>> = {
  cursor: 40,
  vscode: 128,
  windsurf: 100,
};
/** The average tools and tokens of a server, measured with a hundred real servers. */
const TYPICAL = { tools: 13, tokens: 1_400 };
const SERVERS_MAX = 10_000;

/** Asks the questions, measures, recommends a preset, and writes it if the user agrees. */
export async function wizard(
  at: CommandContext,
  { json, workspace = false }: Typed,
): Promise<Shown> {
  const { app } = at;
  if (json) throw usage("Cannot ask in JSON", "`pml config --json` shows the same measures");
  needPerson("Cannot ask which preset fits", "; `pml config --json` shows the same measures");
  const client = await askClient(at);
  const servers = await askServers(at, own(app).length);
  await askAll(at);
  // A server that did not answer counts as planned.
  const planned = servers - own(app).filter(({ tools }) => tools > 0).length;
  const costs = await measure(app);
  tell(`\n${costsText(costs, app.config().gateway.exposure)}\n`);
  const { name, why } = recommended(costs, { client, planned, intent: app.config().intent });
  // `recommended` names only presets
  const preset = (await presets()).find((one) => one.name === name) as Preset;
  tell(`The preset for you is ${name}: ${why}\n${preset.does}\n`);
  const { message, ...plan } = await presetPlan(app, { preset, workspace });
  return await agreed(at, { ...plan, said: message });
}

/** Returns the preset that fits, and why. */
export function recommended(
  { catalog, modes }: Pick<AllCosts, "catalog" | "modes">,
  { client, planned, intent }: WizardAnswers,
): { readonly name: string; readonly why: string } {
  const costOf = (preset: string) => modes.find(({ name }) => name === preset)?.tokens ?? 0;
  const tools = catalog.tools + planned * TYPICAL.tools;
  const tokens = costOf("full_proxy") + planned * TYPICAL.tokens;
  const most = TOOLS_MAX[client] ?? Infinity;
  const all = `all ${formatNumber(tools)} tools of ${catalog.servers + planned} servers`;
  const limit = formatNumber(BREAK_EVEN.cached);
  if (tokens <= BREAK_EVEN.cached && tools <= most) {
    const why = `${all} cost ${formatNumber(tokens)} tokens, no more than the ${limit} up to ` +
      "which it costs less to list all";
    return { name: "full_proxy", why };
  }
  const against = tools > most
    ? `${all} are more than the ${most} that ${client} was reported to take`
    : `${all} cost ${formatNumber(tokens)} tokens in every session. Up to ${limit} it costs less ` +
      "to list all";
  return intent === undefined
    ? { name: "meta_only", why: against }
    : { name: "hybrid_balanced", why: `${against}; your intent says which to list at once` };
}

async function askClient(at: CommandContext): Promise<WizardAnswers["client"]> {
  const names = [...CLIENTS, "other"] as const;
  for (;;) {
    const word = await ask(at, `Which client do you use? (${names.join(", ")})`);
    const client = names.find((name) => name === word.toLowerCase());
    if (client !== undefined) return client;
  }
}

async function askServers(at: CommandContext, present: number): Promise<number> {
  const question = "How many MCP servers will be behind PML?";
  for (;;) {
    const word = await ask(at, `${question} (Enter for the ${present} that are set up)`);
    if (word === "") return present;
    if (/^\d+$/.test(word) && Number(word) <= SERVERS_MAX) return Math.max(Number(word), present);
  }
}

async function ask({ signal }: CommandContext, question: string): Promise<string> {
  const word = await askWord(question, signal);
  if (word !== undefined) return word;
  throw new PmlError("CANCELLED", "Cannot recommend a preset: you stopped it", {
    hint: "Nothing was written",
  });
}

/** Asks all servers for their tools at the same time, and shows the result of each. */
async function askAll(at: CommandContext): Promise<void> {
  const { app } = at;
  const names = app.servers.states().map(({ name }) => name);
  tell(`\nAsking ${counted(names.length, "server")} for their tools:`);
  await Promise.all(names.map(async (name) => {
    await askForTools(at, { only: name, isWhole: true });
    const server = app.servers.states().find((one) => one.name === name);
    if (server === undefined) return;
    const tools = app.catalog.toolsOf(name)
      .filter(({ id }) => app.policy.now.judge(id).kind !== "deny").length;
    const state = server.state === "ready" ? counted(tools, "tool") : server.state;
    tell(`  ${name}: ${stateSaid({ ...server, state })}`);
  }));
}

/** Returns the servers that the user set up, without the built-ins. */
function own(app: App): ReturnType<App["servers"]["states"]> {
  return app.servers.states().filter(({ name }) => !app.directory.at(name).origin.isShipped);
}

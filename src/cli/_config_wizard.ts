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
import { quoted } from "../core/json.ts";
import { type AllCosts, BREAK_EVEN, costsText, formatNumber, measure } from "./_config_costs.ts";
import { confirmChange } from "./_config_file.ts";
import { presetPlan } from "./_config_preset.ts";
import { usage } from "./_failure.ts";
import { stateText } from "./_find.ts";
import {
  askForTools,
  type CommandContext,
  type CommandInput,
  type CommandOutput,
} from "./_command_context.ts";
import { askWord, assertTerminal } from "./_terminal.ts";
import { tell } from "./out.ts";

/** The data that a recommendation depends on. */
export interface WizardAnswers {
  readonly client: ClientName | "other";
  /** The number of servers that the user plans to add to the measured ones. */
  readonly plannedCount: number;
  readonly intent: string | undefined;
}

/**
 * The maximum number of tools that each client was reported to accept. It differs between versions of
 * a client, so the text for the user contains "reported", too.
 */
const TOOLS_MAX: Partial<Record<WizardAnswers["client"], number>> = {
  cursor: 40,
  vscode: 128,
  windsurf: 100,
};
/** The average numbers of tools and tokens of a server, measured with a hundred real servers. */
const AVERAGE_SERVER = { tools: 13, tokens: 1_400 };
const SERVERS_MAX = 10_000;

/** Asks the questions, measures, recommends a preset, and writes it if the user agrees. */
export async function wizard(
  context: CommandContext,
  { json, workspace = false }: CommandInput,
): Promise<CommandOutput> {
  const { app } = context;
  if (json) throw usage("Cannot ask in JSON", "`pml config --json` shows the same measures");
  assertTerminal("Cannot ask which preset fits", "; `pml config --json` shows the same measures");
  const client = await askClient(context);
  const servers = await askServers(context, userServers(app).length);
  await askAll(context);
  // A server without measured tools, for example because it did not start, counts as a planned one.
  const plannedCount = servers - userServers(app).filter(({ tools }) => tools > 0).length;
  const costs = await measure(app);
  // Without the recommendation of the table, which does not know the answers.
  tell(`\n${costsText(costs)}\n`);
  if (plannedCount > 0) tell(plannedText(plannedCount));
  const { name, why } = recommendPreset(costs, {
    client,
    plannedCount,
    intent: app.config().intent,
  });
  // `recommendPreset` returns only names of presets.
  const preset = (await presets()).find((each) => each.name === name) as Preset;
  tell(`The preset for you is ${name}: ${why}\n${preset.does}\n`);
  const { message, ...plan } = await presetPlan(app, { preset, workspace });
  return await confirmChange(context, { ...plan, details: message });
}

/** Returns the name of the best preset, and the reason. */
export function recommendPreset(
  { catalog, modes }: Pick<AllCosts, "catalog" | "modes">,
  { client, plannedCount, intent }: WizardAnswers,
): { readonly name: string; readonly why: string } {
  const costOf = (preset: string) => modes.find(({ name }) => name === preset)?.tokens ?? 0;
  const tools = catalog.tools + plannedCount * AVERAGE_SERVER.tools;
  const tokens = costOf("full_proxy") + plannedCount * AVERAGE_SERVER.tokens;
  // No limit is known for other clients.
  const most = TOOLS_MAX[client] ?? Infinity;
  const planned = `${formatNumber(plannedCount * AVERAGE_SERVER.tools)} for ${plannedCount} more`;
  const all = `all ${formatNumber(catalog.tools)} tools of ${counted(catalog.servers, "server")}${
    plannedCount === 0 ? "" : ` and ${planned}`
  }`;
  const limit = formatNumber(BREAK_EVEN.cached);
  if (tokens <= BREAK_EVEN.cached && tools <= most) {
    const why = `${all} cost ${formatNumber(tokens)} tokens, no more than the ${limit} up to ` +
      "which it costs less to list all";
    return { name: "full_proxy", why };
  }
  const whyNotAll = tools > most
    ? `${all} are more than the ${most} that ${client} was reported to take`
    : `${all} cost ${
      formatNumber(tokens)
    } tokens in every session. Listing all tools costs less than meta_only only up to ${limit} ` +
      `tokens with a prompt cache, or ${formatNumber(BREAK_EVEN.uncached)} without one`;
  return intent === undefined ? { name: "meta_only", why: whyNotAll } : {
    name: "hybrid_balanced",
    why: `${whyNotAll}. hybrid_balanced costs more than meta_only, and lists the tools that fit ` +
      "your intent, so that the model need not search for them",
  };
}

/** Returns the text about servers that are not in the table. */
function plannedText(count: number): string {
  const { tools, tokens } = AVERAGE_SERVER;
  return `Not in the table: ${counted(count, "server")} that you plan, or that did not list its ` +
    `tools. For each, PML adds an average of ${tools} tools and ${formatNumber(tokens)} tokens`;
}

async function askClient(context: CommandContext): Promise<WizardAnswers["client"]> {
  const names = [...CLIENTS, "other"] as const;
  for (;;) {
    const word = await ask(context, `Which client do you use? (${names.join(", ")})`);
    const client = names.find((name) => name === word.toLowerCase());
    if (client !== undefined) return client;
    tell(`Type one of these names, or "other"${word && `: ${quoted(word, 60)} is none of them`}`);
  }
}

async function askServers(context: CommandContext, present: number): Promise<number> {
  const question = "How many MCP servers will be behind PML, without those that come with PML?";
  for (;;) {
    const word = await ask(context, `${question} (Enter for the ${present} that are set up)`);
    if (word === "") return present;
    if (/^\d+$/.test(word) && Number(word) <= SERVERS_MAX) {
      if (Number(word) < present) tell(`PML counts ${present}, as many as are set up`);
      return Math.max(Number(word), present);
    }
    tell(`Type a whole number from 0 to ${formatNumber(SERVERS_MAX)}, or press Enter`);
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
async function askAll(context: CommandContext): Promise<void> {
  const { app } = context;
  const names = app.servers.states().map(({ name }) => name);
  tell(`\nAsking ${counted(names.length, "server")} for their tools:`);
  await Promise.all(names.map(async (name) => {
    await askForTools(context, { only: name, waitsForAll: true });
    const server = app.servers.states().find((one) => one.name === name);
    if (server === undefined) return;
    const tools = app.catalog.toolsOf(name)
      .filter(({ id }) => app.policy.now.judge(id).kind !== "deny").length;
    const state = server.state === "ready" ? counted(tools, "tool") : server.state;
    tell(`  ${name}: ${stateText({ ...server, state })}`);
  }));
}

/** Returns the servers that the user set up, without the built-ins. */
function userServers(app: App): ReturnType<App["servers"]["states"]> {
  return app.servers.states().filter(({ name }) => !app.directory.get(name).origin.isShipped);
}

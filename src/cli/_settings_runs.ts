/**
 * The commands that change the settings of PML, and those for authors of tools or code.
 *
 * @module
 */

import { capability } from "./_capability.ts";
import { config } from "./_config.ts";
import { types } from "./_declare.ts";
import { installModel } from "./_install_model.ts";
import { key } from "./_key.ts";
import { learn } from "./_learn.ts";
import { ruleCommand } from "./_rules.ts";
import { rules } from "./_rule_list.ts";
import { token } from "./_token.ts";
import type { CommandContext, CommandInput, CommandOutput } from "./_command_context.ts";
import { readOffers } from "./_unmet_rules.ts";
import { outdated, upgrade } from "./_upgrade.ts";

/** The commands by their names. */
export const SETTINGS = {
  capability,
  config,
  key,
  learn,
  outdated,
  rules,
  token,
  types,
  upgrade,
  "install-model": installModel,
  allow,
  ask: ruleCommand("ask"),
  deny: ruleCommand("deny"),
};

/** Adds an allow rule. The registry of its server decides which file gets the rule. */
async function allow(context: CommandContext, input: CommandInput): Promise<CommandOutput> {
  if (!input.remove) await readOffers(context.app);
  return await ruleCommand("allow")(context, input);
}

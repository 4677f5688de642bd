/**
 * The commands that change how PML works, and those for who writes tools or code.
 *
 * @module
 */

import { ruleCommand } from "./_rules.ts";

export { capability } from "./_capability.ts";
export { config } from "./_config.ts";
export { types } from "./_declare.ts";
export { installModel as model } from "./_install_model.ts";
export { key } from "./_key.ts";
export { learn } from "./_learn.ts";
export { token } from "./_token.ts";
export { outdated, upgrade } from "./_upgrade.ts";

export const allow = ruleCommand("allow");
export const ask = ruleCommand("ask");
export const deny = ruleCommand("deny");

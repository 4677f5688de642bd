/**
 * The lists of rules as files hold them, and the defaults that ship with PML.
 *
 * @module
 */

import defaults from "../../config/mcp-permissions.json" with { type: "json" };
import { parsePattern, type Pattern } from "../core/pattern.ts";

/** One line of a list of rules, and the file that holds it. */
export interface RuleLine {
  /** What it covers. */
  readonly pattern: Pattern;
  /** A path, or `config/mcp-permissions.json`. */
  readonly source: string;
}

/** The three lists of rules. */
export interface Rules {
  /** What never runs. */
  readonly deny: readonly RuleLine[];
  /** What is asked about. */
  readonly ask: readonly RuleLine[];
  /** What runs unasked. */
  readonly allow: readonly RuleLine[];
}

/** Where the default rules stand. */
export const DEFAULTS_SOURCE = "config/mcp-permissions.json";

/** No rule at all. */
export const NO_RULES: Rules = { deny: [], ask: [], allow: [] };

/** Gives the rules that hold where nobody wrote others. */
export function defaultRules(): Rules {
  return rulesOf(defaults, DEFAULTS_SOURCE);
}

/** Reads the lists of a file, whose lines are known to be rules. */
export function rulesOf(
  said: { readonly [K in keyof Rules]?: readonly string[] },
  source: string,
): Rules {
  const lines = (texts: readonly string[] = []) =>
    texts.map((text) => ({ pattern: parsePattern(text), source }));
  return { deny: lines(said.deny), ask: lines(said.ask), allow: lines(said.allow) };
}

/**
 * The lists of rules as files hold them, and the defaults that ship with PML.
 *
 * @module
 */

import defaults from "../../config/mcp-permissions.json" with { type: "json" };
import { quoted } from "../core/json.ts";
import { parsePattern, type Pattern } from "../core/pattern.ts";
import type { Problem } from "./_problem.ts";

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

/**
 * What the rules of all files together may say of the arguments of one tool, so that each call of
 * it is judged in time.
 */
const MOST = { conditions: 1_000, characters: 16_384 };

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

/** Tells of files that bring one tool over what rules may say of its arguments. */
export function crowdedRules(
  files: readonly { readonly path: string; readonly permissions: Rules | undefined }[],
): readonly Problem[] {
  const sizes = new Map<string, typeof MOST>();
  return files.flatMap(({ path, permissions = NO_RULES }) => {
    const problems = new Map<string, Problem>();
    for (const { pattern } of Object.values(permissions).flat()) {
      if (pattern.kind !== "conditions") continue;
      const id = `${pattern.server}:${pattern.tool}`;
      const size = sizes.get(id) ?? { conditions: 0, characters: 0 };
      sizes.set(id, size);
      size.conditions += pattern.conditions.length;
      for (const { glob } of pattern.conditions) size.characters += glob.length;
      if (size.conditions <= MOST.conditions && size.characters <= MOST.characters) continue;
      const found = `${said(size)} for ${quoted(id)}, with the files above it`;
      problems.set(id, { file: path, key: "permissions", found, wanted: `at most ${said(MOST)}` });
    }
    return [...problems.values()];
  });
}

function said({ conditions, characters }: typeof MOST): string {
  return `${conditions} conditions with globs of ${characters} characters`;
}

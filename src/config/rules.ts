/**
 * The lists of rules in files, and the default rules that ship with PML.
 *
 * @module
 */

import defaults from "../../config/mcp-permissions.json" with { type: "json" };
import { quoted } from "../core/json.ts";
import { parsePattern, type Pattern } from "../core/pattern.ts";
import type { ConfigProblem } from "./_problem.ts";

/** One rule of a list, and the file that contains it. */
export interface RuleLine {
  /** The tools that the rule covers. */
  readonly pattern: Pattern;
  /** The path of the file, or `config/mcp-permissions.json`. */
  readonly source: string;
}

/** The three lists of rules. */
export interface Rules {
  /** Calls that never run. */
  readonly deny: readonly RuleLine[];
  /** Calls that need a question. */
  readonly ask: readonly RuleLine[];
  /** Calls that run without a question. */
  readonly allow: readonly RuleLine[];
}

/** The file of the default rules. */
export const DEFAULTS_SOURCE = "config/mcp-permissions.json";

/** No rules at all. */
export const NO_RULES: Rules = { deny: [], ask: [], allow: [] };

/**
 * The maximum numbers of conditions that all files together may have on the arguments of one tool,
 * and of characters in their globs, so that judging a call takes bounded time.
 */
const MOST = { conditions: 1_000, characters: 16_384 };

/** The texts of the default rules. */
export const DEFAULT_TEXTS: { readonly [K in keyof Rules]: readonly string[] } = defaults;

/** Returns the default rules. */
export function defaultRules(): Rules {
  return rulesOf(defaults, DEFAULTS_SOURCE);
}

/** Converts the lists of a file. The schema has checked that each line is a rule. */
export function rulesOf(
  rules: { readonly [K in keyof Rules]?: readonly string[] },
  source: string,
): Rules {
  const lines = (texts: readonly string[] = []) =>
    texts.map((text) => ({ pattern: parsePattern(text), source }));
  return { deny: lines(rules.deny), ask: lines(rules.ask), allow: lines(rules.allow) };
}

/** Returns the problems of files that exceed the limit of conditions for one tool. */
export function conditionProblems(
  files: readonly { readonly path: string; readonly permissions: Rules | undefined }[],
): readonly ConfigProblem[] {
  const sizes = new Map<string, typeof MOST>();
  return files.flatMap(({ path, permissions = NO_RULES }) => {
    const problems = new Map<string, ConfigProblem>();
    for (const { pattern } of Object.values(permissions).flat()) {
      if (pattern.kind !== "conditions") continue;
      const id = `${pattern.server}:${pattern.tool}`;
      const size = sizes.get(id) ?? { conditions: 0, characters: 0 };
      sizes.set(id, size);
      size.conditions += pattern.conditions.length;
      for (const { glob } of pattern.conditions) size.characters += glob.length;
      if (size.conditions <= MOST.conditions && size.characters <= MOST.characters) continue;
      const found = `${sizeText(size)} for ${quoted(id)}, with the files above it`;
      problems.set(id, {
        file: path,
        key: "permissions",
        found,
        wanted: `at most ${sizeText(MOST)}`,
      });
    }
    return [...problems.values()];
  });
}

function sizeText({ conditions, characters }: typeof MOST): string {
  return `${conditions} conditions with globs of ${characters} characters`;
}

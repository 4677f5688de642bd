/**
 * An index of rules by the tools they name, so that a lookup takes the same time for any number of
 * rules.
 *
 * @module
 */

import { GlobSet } from "../core/glob.ts";
import type { Condition, Pattern } from "../core/pattern.ts";
import type { ToolId } from "../core/tool_id.ts";
import type { MatchableArguments } from "./_arguments.ts";

/** A pattern, and the file that contains it, or "defaults". */
export interface Rule {
  readonly pattern: Pattern;
  readonly source: string;
}

/** A rule with conditions. */
interface ConditionalRule {
  readonly rule: Rule;
  readonly conditions: readonly Condition[];
}

/** The rules for the arguments of one tool. */
class ArgumentRules {
  /** The rules that require exactly these arguments, by their canonical text. */
  readonly exact = new Map<string, Rule>();
  /** The same rules by their text with rounded numbers. */
  readonly rounded = new Map<string, Rule>();
  readonly conditioned: ConditionalRule[] = [];
  #sets: ReadonlyMap<string, GlobSet> | undefined;

  /** Returns the globs of all rules for one argument. */
  globsOf(name: string): GlobSet {
    this.#sets ??= new Map(
      [...Map.groupBy(this.conditioned.flatMap(({ conditions }) => conditions), ({ name }) => name)]
        .map(([name, conditions]) => [name, new GlobSet(conditions.map(({ glob }) => glob))]),
    );
    return this.#sets.get(name) ?? NO_GLOBS;
  }
}

/**
 * The index of one list of rules. A plain rule is about all calls of a tool, a server or
 * everything; a narrow rule depends on the arguments. If two rules are equal, the first one is
 * used.
 */
export class RuleIndex {
  readonly #plain = new Map<string, Rule>();
  readonly #narrow = new Map<string, ArgumentRules>();

  /** Adds the rules to the index. */
  constructor(rules: readonly Rule[]) {
    for (const rule of rules) this.#add(rule);
  }

  /** Returns the rule `*`, `server:*` or `server:tool`. */
  findPlain(scope: string): Rule | undefined {
    return this.#plain.get(scope);
  }

  /** Returns whether a rule depends on the arguments of a tool. */
  isNarrow(id: ToolId): boolean {
    return this.#narrow.has(id);
  }

  /**
   * Returns the first rules that depend on the arguments of a tool, at most `most` of each kind.
   */
  findNarrow(id: ToolId, most: number): readonly Rule[] {
    const { exact, conditioned } = this.#narrow.get(id) ?? NO_RULES;
    return [...conditioned.slice(0, most).map(({ rule }) => rule), ...exact.values().take(most)];
  }

  /** Returns a rule that these arguments certainly match. */
  findCertain(id: ToolId, args: MatchableArguments): Rule | undefined {
    const narrow = this.#narrow.get(id) ?? NO_RULES;
    const isCovered = memoizeByName((name) => args.certainMatcher(name, narrow.globsOf(name)));
    const holds = (conditions: readonly Condition[]) =>
      conditions.every(({ name }) => isCovered(name)(globsIn(conditions, name))) &&
      // An allow rule for a program does not allow setting environment variables for it.
      args.environments.every((name) => globsIn(conditions, name).length > 0);
    return this.#exact(id, args) ??
      narrow.conditioned.find(({ conditions }) => holds(conditions))?.rule;
  }

  /** Returns a rule that these arguments match or may match. Undecidable paths do not match. */
  findPossible(id: ToolId, args: MatchableArguments): Rule | undefined {
    return this.#findPossible(id, args, () => false);
  }

  /** Returns a rule that these arguments match or may match. Undecidable paths match any glob. */
  findUndecided(id: ToolId, args: MatchableArguments): Rule | undefined {
    return this.#findPossible(id, args, (name) => args.isUndecidable(name));
  }

  #findPossible(
    id: ToolId,
    args: MatchableArguments,
    isUndecidable: (name: string) => boolean,
  ): Rule | undefined {
    const narrow = this.#narrow.get(id) ?? NO_RULES;
    const { exact, rounded, conditioned } = narrow;
    const isUnclear = exact.size > 0 &&
      (args.canonical === undefined || args.rounded === undefined);
    // Arguments without a canonical text may equal those of any rule, so the first rule counts.
    const [firstExact] = isUnclear ? exact.values() : [];
    const coveringOf = memoizeByName((name) => args.possibleGlobs(name, narrow.globsOf(name)));
    const holds = ({ name, glob }: Condition) => {
      const covering = coveringOf(name);
      return covering === "every" || covering.has(glob) || isUndecidable(name);
    };
    const certain = firstExact ?? this.#exact(id, args);
    if (certain !== undefined) return certain;
    const rounding = rounded.size > 0 ? rounded.get(args.rounded ?? "") : undefined;
    // guard: rounded-deny
    if (rounding !== undefined) return rounding;
    return conditioned.find(({ conditions }) => conditions.every(holds))?.rule;
  }

  /**
   * Returns whether a rule of the tool names each variable in the arguments that changes how
   * programs run, or is for exactly these arguments.
   */
  namesVariables(id: ToolId, args: MatchableArguments): boolean {
    const { conditioned } = this.#narrow.get(id) ?? NO_RULES;
    return this.#exact(id, args) !== undefined || conditioned.some(({ conditions }) => {
      const globs = globsIn(conditions, "env");
      return args.steering.every((variable) => globs.includes(variable));
    });
  }

  #exact(id: ToolId, args: MatchableArguments): Rule | undefined {
    const exact = this.#narrow.get(id)?.exact;
    return exact?.size && args.canonical !== undefined ? exact.get(args.canonical) : undefined;
  }

  #add(rule: Rule): void {
    const { pattern } = rule;
    switch (pattern.kind) {
      case "conditions":
        this.#rulesOf(pattern).conditioned.push({ rule, conditions: pattern.conditions });
        break;
      case "arguments":
        addOnce(this.#rulesOf(pattern).exact, pattern.canonical, rule);
        addOnce(this.#rulesOf(pattern).rounded, pattern.rounded, rule);
        break;
      default:
        addOnce(this.#plain, pattern.text, rule);
    }
  }

  #rulesOf({ server, tool }: { readonly server: string; readonly tool: string }): ArgumentRules {
    const id = `${server}:${tool}`;
    const rules = this.#narrow.get(id) ?? new ArgumentRules();
    this.#narrow.set(id, rules);
    return rules;
  }
}

const NO_GLOBS = new GlobSet([]);
const NO_RULES = new ArgumentRules();

function globsIn(conditions: readonly Condition[], name: string): readonly string[] {
  return conditions.filter((condition) => condition.name === name).map(({ glob }) => glob);
}

function memoizeByName<T>(compute: (name: string) => T): (name: string) => T {
  const cache = new Map<string, T>();
  return (name) => {
    if (!cache.has(name)) cache.set(name, compute(name));
    return cache.get(name) as T; // set above
  };
}

function addOnce(map: Map<string, Rule>, key: string | undefined, rule: Rule): void {
  if (key !== undefined && !map.has(key)) map.set(key, rule);
}

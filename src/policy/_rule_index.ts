/**
 * An index of rules by the tools they name, so that a lookup takes the same time for any number of
 * rules.
 *
 * @module
 */

import { GlobSet } from "../core/glob.ts";
import type { Condition, Pattern } from "../core/pattern.ts";
import type { ToolId } from "../core/tool_id.ts";
import type { SeenArguments } from "./_arguments.ts";

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
      [...Map.groupBy(this.conditioned.flatMap(({ conditions }) => conditions), (one) => one.name)]
        .map(([name, all]) => [name, new GlobSet(all.map(({ glob }) => glob))]),
    );
    return this.#sets.get(name) ?? NO_GLOBS;
  }
}

/** The index of one list of rules. Of equal rules the first is used. */
export class RuleIndex {
  readonly #plain = new Map<string, Rule>();
  readonly #narrow = new Map<string, ArgumentRules>();

  /** Adds the rules to the index. */
  constructor(rules: readonly Rule[]) {
    for (const rule of rules) this.#add(rule);
  }

  /** Returns the rule `*`, `server:*` or `server:tool`. */
  plain(scope: string): Rule | undefined {
    return this.#plain.get(scope);
  }

  /** Returns whether a rule depends on the arguments of a tool. */
  isNarrow(id: ToolId): boolean {
    return this.#narrow.has(id);
  }

  /**
   * Returns the first rules that depend on the arguments of a tool, at most `most` of each kind.
   */
  narrow(id: ToolId, most: number): readonly Rule[] {
    const { exact, conditioned } = this.#narrow.get(id) ?? NONE;
    return [...conditioned.slice(0, most).map(({ rule }) => rule), ...exact.values().take(most)];
  }

  /** Returns a rule that these arguments certainly match. */
  surely(id: ToolId, args: SeenArguments): Rule | undefined {
    const narrow = this.#narrow.get(id) ?? NONE;
    const isCovered = remembered((name) => args.surely(name, narrow.globsOf(name)));
    const holds = (conditions: readonly Condition[]) =>
      conditions.every(({ name }) => isCovered(name)(globsIn(conditions, name))) &&
      // An allow rule for a program does not allow setting environment variables for it.
      args.environments.every((name) => globsIn(conditions, name).length > 0);
    return this.#exact(id, args) ??
      narrow.conditioned.find(({ conditions }) => holds(conditions))?.rule;
  }

  /** Returns a rule that these arguments match or may match; without undecidable paths. */
  perhaps(id: ToolId, args: SeenArguments): Rule | undefined {
    return this.#perhaps(id, args, () => false);
  }

  /** Returns a rule that these arguments match if undecidable paths count as matches. */
  undecided(id: ToolId, args: SeenArguments): Rule | undefined {
    return this.#perhaps(id, args, (name) => args.isOpen(name));
  }

  #perhaps(
    id: ToolId,
    args: SeenArguments,
    isOpen: (name: string) => boolean,
  ): Rule | undefined {
    const narrow = this.#narrow.get(id) ?? NONE;
    const { exact, rounded, conditioned } = narrow;
    const isUnclear = exact.size > 0 &&
      (args.canonical === undefined || args.rounded === undefined);
    const [any] = isUnclear ? exact.values() : [];
    const coveringOf = remembered((name) => args.perhaps(name, narrow.globsOf(name)));
    const holds = ({ name, glob }: Condition) => {
      const covering = coveringOf(name);
      return covering === "every" || covering.has(glob) || isOpen(name);
    };
    const certain = any ?? this.#exact(id, args);
    if (certain !== undefined) return certain;
    const rounding = rounded.size > 0 ? rounded.get(args.rounded ?? "") : undefined;
    // guard: rounded-deny
    if (rounding !== undefined) return rounding;
    return conditioned.find(({ conditions }) => conditions.every(holds))?.rule;
  }

  /** Returns whether a rule of the tool names each variable that changes how programs run. */
  names(id: ToolId, args: SeenArguments): boolean {
    const { conditioned } = this.#narrow.get(id) ?? NONE;
    return this.#exact(id, args) !== undefined || conditioned.some(({ conditions }) => {
      const named = globsIn(conditions, "env");
      return args.steering.every((variable) => named.includes(variable));
    });
  }

  #exact(id: ToolId, args: SeenArguments): Rule | undefined {
    const exact = this.#narrow.get(id)?.exact;
    return exact?.size && args.canonical !== undefined ? exact.get(args.canonical) : undefined;
  }

  #add(rule: Rule): void {
    const { pattern } = rule;
    switch (pattern.kind) {
      case "conditions":
        this.#of(pattern).conditioned.push({ rule, conditions: pattern.conditions });
        break;
      case "arguments":
        addOnce(this.#of(pattern).exact, pattern.canonical, rule);
        addOnce(this.#of(pattern).rounded, pattern.rounded, rule);
        break;
      default:
        addOnce(this.#plain, pattern.text, rule);
    }
  }

  #of({ server, tool }: { readonly server: string; readonly tool: string }): ArgumentRules {
    const id = `${server}:${tool}`;
    const rules = this.#narrow.get(id) ?? new ArgumentRules();
    this.#narrow.set(id, rules);
    return rules;
  }
}

const NO_GLOBS = new GlobSet([]);
const NONE = new ArgumentRules();

function globsIn(conditions: readonly Condition[], name: string): readonly string[] {
  return conditions.filter((one) => one.name === name).map(({ glob }) => glob);
}

function remembered<T>(look: (name: string) => T): (name: string) => T {
  const cache = new Map<string, T>();
  return (name) => {
    if (!cache.has(name)) cache.set(name, look(name));
    return cache.get(name) as T; // it was set above
  };
}

function addOnce(map: Map<string, Rule>, key: string | undefined, rule: Rule): void {
  if (key !== undefined && !map.has(key)) map.set(key, rule);
}

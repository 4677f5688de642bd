/**
 * A list of rules by what they name, so that a lookup costs the same whatever their number.
 *
 * @module
 */

import type { Condition, Pattern } from "../core/pattern.ts";
import type { ToolId } from "../core/tool_id.ts";
import type { SeenArguments } from "./_arguments.ts";

/** A pattern, and the file that it stands in, or "defaults". */
export interface Rule {
  readonly pattern: Pattern;
  readonly source: string;
}

/** The rules that look at the arguments of one tool. */
interface Narrow {
  /** Those that want exactly some arguments, by their canonical text. */
  readonly exact: Map<string, Rule>;
  readonly conditioned: Rule[];
}

/** One of the lists; of equal rules the first counts. */
export class RuleIndex {
  readonly #plain = new Map<string, Rule>();
  readonly #narrow = new Map<string, Narrow>();

  /** Sorts the rules by what they name. */
  constructor(rules: readonly Rule[]) {
    for (const rule of rules) this.#add(rule);
  }

  /** Gives the rule `*`, `server:*` or `server:tool`. */
  plain(scope: string): Rule | undefined {
    return this.#plain.get(scope);
  }

  /** Gives every rule that looks at the arguments of a tool. */
  narrow(id: ToolId): readonly Rule[] {
    const { exact, conditioned } = this.#narrow.get(id) ?? NONE;
    return [...conditioned, ...exact.values()];
  }

  /** Gives a rule that these arguments meet without a doubt. */
  surely(id: ToolId, seen: SeenArguments): Rule | undefined {
    return this.#exact(id, seen) ?? this.#conditioned(id, (one) => seen.surely(one));
  }

  /** Gives a rule that these arguments meet, or of which that cannot be told. */
  perhaps(id: ToolId, seen: SeenArguments): Rule | undefined {
    const exact = this.#narrow.get(id)?.exact ?? NONE.exact;
    const [any] = exact.size > 0 && seen.canonical === undefined ? exact.values() : [];
    return any ?? this.#exact(id, seen) ?? this.#conditioned(id, (one) => seen.perhaps(one));
  }

  #exact(id: ToolId, seen: SeenArguments): Rule | undefined {
    const exact = this.#narrow.get(id)?.exact;
    return exact?.size && seen.canonical !== undefined ? exact.get(seen.canonical) : undefined;
  }

  #conditioned(id: ToolId, holds: (condition: Condition) => boolean): Rule | undefined {
    return this.#narrow.get(id)?.conditioned.find(({ pattern }) =>
      pattern.kind === "conditions" && pattern.conditions.every(holds)
    );
  }

  #add(rule: Rule): void {
    const { pattern } = rule;
    switch (pattern.kind) {
      case "conditions":
        this.#of(pattern).conditioned.push(rule);
        break;
      case "arguments":
        addOnce(this.#of(pattern).exact, pattern.canonical, rule);
        break;
      default:
        addOnce(this.#plain, pattern.text, rule);
    }
  }

  #of({ server, tool }: { readonly server: string; readonly tool: string }): Narrow {
    const id = `${server}:${tool}`;
    const known = this.#narrow.get(id) ?? { exact: new Map(), conditioned: [] };
    this.#narrow.set(id, known);
    return known;
  }
}

const NONE: Narrow = { exact: new Map(), conditioned: [] };

function addOnce(map: Map<string, Rule>, key: string, rule: Rule): void {
  if (!map.has(key)) map.set(key, rule);
}

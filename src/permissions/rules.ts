/**
 * The person's allow, ask and deny rules, and what they say of one tool.
 *
 * @module
 */

import type { Verdict } from "../core/call.ts";
import { PmlError } from "../core/errors.ts";
import { sha256 } from "../core/hash.ts";
import { quoted } from "../core/json.ts";
import type { Pattern } from "../core/pattern.ts";
import { splitToolId, type ToolId } from "../core/tool_id.ts";

/** A pattern, and the file that it stands in, or "defaults". */
export interface Rule {
  readonly pattern: Pattern;
  readonly source: string;
}

/** The three lists. Their order says nothing. */
export interface RuleSet {
  readonly deny: readonly Rule[];
  readonly ask: readonly Rule[];
  readonly allow: readonly Rule[];
}

/** Says what the rules say of a tool. */
export type Judge = (id: ToolId) => Verdict;

/** What a judge knows beside the rules. */
export interface JudgeOptions {
  /** Whether a server is built in, or was shown and accepted; nothing is known where it is left out. */
  readonly known?: (server: string) => boolean;
}

/**
 * Makes the judge of a set of rules: any matching deny wins, then the most specific of allow and
 * ask, ask winning ties. A bare `*` in allow covers neither a first use nor `shell`.
 */
export function makeJudge(rules: RuleSet, { known }: JudgeOptions = {}): Judge {
  const deny = byText(rules.deny);
  const ask = byText(rules.ask);
  const allow = byText(rules.allow);
  return (id) => {
    const { server } = splitToolId(id);
    const scopes = [id, `${server}:*`, "*"];
    for (const scope of scopes) {
      const rule = deny.get(scope);
      if (rule) return verdict("deny", rule);
    }
    for (const scope of scopes) {
      const asking = ask.get(scope);
      if (asking) return verdict("ask", asking);
      const allowing = allow.get(scope);
      if (allowing && (scope !== "*" || server !== "shell" && known?.(server))) {
        return verdict("allow", allowing);
      }
    }
    const rule = !allow.has("*") ? "no rule" : server === "shell" ? "shell asks" : "first use";
    return { kind: "ask", rule, source: "defaults" };
  };
}

/** Tells whether an exact allow of this tool, added to the rules of `source`, would let it run. */
export function alwaysWins(
  rules: RuleSet,
  { id, source }: { readonly id: ToolId; readonly source: string },
): boolean {
  const kept = rules.ask.filter((rule) => rule.source !== source);
  return makeJudge({ ...rules, allow: [] })(id).kind !== "deny" && !byText(kept).has(id);
}

/**
 * Tells whether code that calls these tools may run unasked. Each real call is judged again, so
 * this only decides what is asked before.
 */
export function inferCapabilityApprovalMode(
  judge: Judge,
  ids: readonly ToolId[],
): "auto" | "hil" {
  const verdicts = ids.map((id) => ({ id, said: judge(id) }));
  for (const { id, said } of verdicts) if (said.kind === "deny") throw denied(id, said);
  return verdicts.every(({ said }) => said.kind === "allow") ? "auto" : "hil";
}

/** Hashes what the rules say, whatever their order. */
export function rulesVersion(rules: RuleSet): string {
  const texts = [rules.deny, rules.ask, rules.allow].map((list) =>
    list.map((rule) => JSON.stringify([rule.pattern.text, rule.source])).sort()
  );
  return sha256(JSON.stringify(texts));
}

/** Makes the refusal of a tool that a deny rule matches. */
export function denied(id: ToolId, verdict: Verdict): PmlError {
  return new PmlError("PERMISSION_DENIED", `Cannot run ${quoted(id, 200)}: a deny rule matches`, {
    hint: `The rule ${quoted(verdict.rule)} in ${quoted(verdict.source, 200)} forbids it; ` +
      "only the person can change it",
  });
}

/** Rules by what they name, so that a lookup costs the same whatever their number; the first counts. */
function byText(rules: readonly Rule[]): ReadonlyMap<string, Rule> {
  return new Map(rules.toReversed().map((rule) => [rule.pattern.text, rule]));
}

function verdict(kind: Verdict["kind"], { pattern, source }: Rule): Verdict {
  return { kind, rule: pattern.text, source };
}
